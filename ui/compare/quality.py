"""From two arms and a prompt to a reading: the texts that come with the project, and the visitor's prompt."""

import msgspec

from backend.config import Request, reading_of
from backend.quality import Quality, QualityText
from backend.quality.presets import shipped_texts
from backend.quality.texts import MIN_POSITIONS
from backend.runs.run import Run
from backend.views.quality import PROMPT


def quality_request(asked: Request, shown: Run | None) -> Request:
    """A reading by the arms of a request. `shown`: the run on the page, whose arm A may have continued the prompt."""
    plain = Quality(shipped_texts())
    own = prompt_text(asked, shown)
    texts = [*plain.texts, QualityText(PROMPT, own)] if long_enough(own, plain.context) else plain.texts
    quality = msgspec.structs.replace(plain, texts=texts)
    return msgspec.structs.replace(asked, workload=reading_of(quality), quality=quality)


def prompt_text(asked: Request, shown: Run | None) -> str:
    """The prompt; where the run on the page answered it with the same model and arm A, with what arm A wrote."""
    prompt = asked.workload.prompt
    if shown is None or shown.request.quality is not None or shown.request.traffic is not None or not shown.ended:
        return prompt
    ran = shown.request
    same = ran.model == asked.model and ran.workload.prompt == prompt and not ran.workload.chat
    arms = [next((arm.choices for arm in one.arms if arm.name == "A"), None) for one in (ran, asked)]
    if not same or ran.workload.prompt_tokens or arms[0] != arms[1]:
        return prompt
    return prompt + shown.snapshot().arms["A"].text


def long_enough(text: str, context: int) -> bool:
    """Whether a text surely has the tokens that a reading needs: no word is less than one."""
    return len(text.split()) >= context + MIN_POSITIONS
