"""How the help of a command reads: one line of usage, options with their defaults, examples."""

import argparse
import textwrap

TOPICS = {
    "output": "results go to standard output, progress to standard error. "
    "Tables fit the terminal, from 40 columns on, and name what they leave out; a file or a "
    "pipe gets whole lines without colours",
    "exit codes": "0 success; 2 bad input, a check whose arm would be refused, or output that cannot be written; 3 a "
    "failed run; 130 stopped with Ctrl-C (what was measured is shown and written)",
    "environment": "NO_COLOR switches colours off; COLUMNS sets the width of tables; TOKENDYNO_CACHE names a folder; "
    "HF_HUB_OFFLINE and HF_TOKEN are those of the Hub",
}
"""What holds for all commands."""

_EXAMPLES = """
tokendyno compare --a baseline --b dtype=float32  # two arms, in pairs until they decide
tokendyno fit --model Llama-3-8B --gpu RTX-4090  # what fits on a GPU
tokendyno doctor  # what runs on this machine

tokendyno compare --b cache=static,compile=default  # the defaults against a compiled arm
tokendyno compare --model random:gpt2 --b lowest-memory --json out.json  # a preset; no download

tokendyno run  # the embedded model as it comes
tokendyno run --arm cache=static --prompt-tokens 512 --all  # a synthetic prompt; every figure and row
tokendyno run --arm parallel=tensor-4 --nnodes 2 --rdzv-endpoint node1:29500  # two machines

tokendyno start --b cache=static,compile=default  # from how many tokens on compiling pays
tokendyno start --model random:gpt2 --json start.json  # where the start of one arm goes, as a document

tokendyno advise --model pocket  # what should I use here? in ten minutes at most
tokendyno advise --model Qwen/Qwen3-0.6B --for memory --latency 30ms  # within limits
tokendyno advise --model random:Llama-3-8B --gpu H100-SXM  # a card that is not here

tokendyno check --model gpt-oss-20b --arm attention=sdpa  # verdicts, without running
tokendyno check --arm parallel=tensor-2 --gpu H100-SXM --gpus 2  # on GPUs that are not here

tokendyno export --arm lowest-latency           # a few lines for your own code
tokendyno export --arm compiled --standalone -o compiled.py  # all of it: needs torch and transformers only
tokendyno export --run 3f2a9c1b5d7e8a60b1c2d3e4 -o run.dyno  # a run as one file, to be replayed elsewhere

tokendyno replay run.dyno  # a run from a file, as fast as it was
tokendyno replay 3f2a9c1b5d7e8a60b1c2d3e4 --speed 4  # a run of the history, four times as fast

tokendyno report launch-bound --html report.html  # one file with charts, figures, ledger and scripts

tokendyno story  # the list
tokendyno story sliding-window  # what a sliding window saves, as it was recorded

tokendyno import run.dyno  # into the history, where the page shows it too

tokendyno batch  # static against continuous batching
tokendyno batch --traffic poisson --rate 4 --ttft-limit 0.5  # requests that arrive; goodput
tokendyno batch --trace requests.jsonl --json batch.json  # requests of a file

tokendyno ablate --add dtype=float32 cache=static  # each alone, left out, and in that order
tokendyno ablate --add cache=static loop=own --steps stair --quality  # with what each costs in quality
tokendyno ablate --add cache=static --journal ablation.jsonl  # goes on where it was ended

tokendyno sweep --over batch_size=1,4,16  # one arm over batch sizes
tokendyno sweep --over requests=8,24,100 batching=static,continuous  # every combination

tokendyno claims  # each claim with its verdict
tokendyno claims compile-static-cache  # one in detail: source, figures, commands
tokendyno claims kv-cache --run  # measure again what this machine can; exit code 3 on drift

tokendyno quality --a dtype=float32 --b dtype=bfloat16  # on a story, prose, code and arithmetic
tokendyno quality --b cache=static --text notes.txt --only-given  # on a text of your own

tokendyno fit --model Llama-3-8B --gpu RTX-4090  # a GPU of the catalogue
tokendyno fit --model gpt-oss-20b --vram 24GiB --context 32768  # any other GPU, a longer context

tokendyno history --words compile --since 7d  # runs of the last week that have to do with compiling
tokendyno history show 5f2a91c0  # one of them, by the beginning of its id
tokendyno history pins 5f2a91c0.B 77e0d3b1.A  # two arms of any runs side by side

tokendyno list presets  # the arms that have a name
tokendyno list axes  # of what an arm is written, and what each choice does
tokendyno list gpus  # the names that --gpu accepts

tokendyno open  # the page, in a browser
tokendyno open --port 8000 --no-browser  # on another port, its address only printed

tokendyno serve --model SmolLM2-135M-Instruct --arm lowest-latency  # http://127.0.0.1:8000/v1

tokendyno models  # the names that --model accepts

tokendyno users add ada  # let somebody log in; asks for a password
tokendyno users token ada  # a token for programs

tokendyno doctor  # a screenful
tokendyno doctor --bandwidth  # measure the memory bandwidth, once, for roofline bounds
"""
EXAMPLES: dict[str, list[tuple[str, str]]] = {}
"""Lines with what they do, by command; "" is the program itself."""

for _lines in _EXAMPLES.strip().split("\n\n"):
    _examples = [(line, what) for line, _, what in (line.partition("  # ") for line in _lines.split("\n"))]
    EXAMPLES[_examples[0][0].split()[1] if EXAMPLES else ""] = _examples


def epilog(command: str) -> str:
    """What stands below the options of a command; "" is the program itself."""
    lines = ["examples:"]
    for line, what in EXAMPLES[command]:
        lines += [f"  # {what}", f"  {line}"]
    if not command:
        for topic, text in TOPICS.items():
            lines += ["", *textwrap.wrap(f"{topic}: {text}", 78, subsequent_indent="  ")]
        lines += ["", "tokendyno COMMAND --help tells the options of a command."]
    return "\n".join(lines)


class Help(argparse.HelpFormatter):
    """Shows an option's default unless its help does, or it is empty; keeps the lines of the examples."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        text = action.help or ""
        unset = action.default is None or action.default is False or action.default in ("", argparse.SUPPRESS)
        if unset or not action.option_strings or "default" in text:
            return text
        form = "%(default)g" if isinstance(action.default, float) else "%(default)s"
        return f"{text} (default: {form})"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return text
        return super()._fill_text(text, width, indent)
