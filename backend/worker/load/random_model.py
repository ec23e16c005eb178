"""Models with random weights at their real shape, and a tokenizer for them: no download."""

import contextlib
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, PreTrainedTokenizerFast
from transformers.integrations.hub_kernels import allow_all_hub_kernels

from tokendyno.backend.models.files.config_fields import decode_config
from tokendyno.backend.plan import RANDOM_SEED
from tokendyno.backend.worker.load.auto_class import auto_class
from tokendyno.backend.worker.load.unread import reading

_STD = 0.02
"""Of parameters that nothing else draws: transformers' usual one."""


def random_model(config_json: str, dtype: str, attention: str | None, device: str) -> Any:
    """A model of the architecture in `config_json` (the text of a config.json), with random weights on `device`."""
    return initialize(empty_model(config_json, dtype, attention), device)


def empty_model(config_json: str, dtype: str, attention: str | None) -> Any:
    """The architecture on the meta device: no memory yet."""
    values = decode_config(config_json)
    with reading("config (config.json)"):
        config = AutoConfig.for_model(values.pop("model_type"), **values)
    torch_dtype = getattr(torch, dtype if dtype != "auto" else str(config.dtype or "bfloat16").removeprefix("torch."))
    build = auto_class(config.model_type).from_config
    with torch.device("meta"):
        try:
            with allow_all_hub_kernels() if "/" in (attention or "") else contextlib.nullcontext():
                return build(config, dtype=torch_dtype, attn_implementation=attention)
        except Exception:
            with reading("config (config.json)"):  # whether it fails without what the arm chose
                build(AutoConfig.for_model(**decode_config(config_json)), dtype=torch_dtype)
            raise


def initialize(model: Any, device: str) -> Any:
    """Allocate a model of the meta device on `device` and fill it by the model's own initialization.

    The weights are the same for the same seed, device and version of torch. What that initialization leaves out, as it
    does the routers of ERNIE 4.5, would hold whatever lies in memory: such parameters are drawn, buffers are zero.
    """
    model.to_empty(device=device)
    unset = [one for one in (*model.parameters(), *model.buffers()) if one.is_floating_point() and one.numel()]
    unset = [] if device == "meta" else unset
    with torch.no_grad():
        for tensor in unset:
            tensor[(0,) * tensor.ndim] = torch.nan
        torch.manual_seed(RANDOM_SEED)
        model.tie_weights()
        model.initialize_weights()
        model.tie_weights()
        for tensor in unset:
            if tensor[(0,) * tensor.ndim].isnan().item():
                tensor.normal_(0, _STD) if isinstance(tensor, torch.nn.Parameter) else tensor.zero_()
    return model


def byte_tokenizer(vocab_size: int) -> PreTrainedTokenizerFast:
    """One token per byte; every further id decodes to a word of its own, so that equal ids give equal text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocab_size < len(letters) + 1:
        raise ValueError(f"A byte-level tokenizer needs {len(letters) + 1} ids, the model has {vocab_size}.")
    vocab = {letter: i for i, letter in enumerate(letters)}
    for i in range(len(vocab), vocab_size - 1):
        vocab[f"Ġ{word_of(i - len(letters))}"] = i
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")


# --- words ---------------------------------------------------------------------------------------


_LIST = """
able above across again air alone along amber apple april apron arch area arrow ash atlas attic autumn baker bamboo bank
barn basil basin beach beam bean bear beard bed bee bell bench berry bird blanket bloom blossom blue board bold bolt
bone book boot bow bowl box branch brass brave breeze brick bridge bright broad broom brother brown brush bubble bud
butter button cabin cactus cake camel camp candle canoe canvas cap carpet carrot cart castle cedar cellar chain chair
chalk chapel cherry chest chief child chimney city clay clean clear clever clock cloth cloud clover coal coast coin cold
comb comet compass copper coral cork corn corner cousin cover cow cradle crane cream cricket crow crown cup curious
curve daisy dance dawn day deer desert desk dew diary dinner dock dog door dove dragon dream drift drum dry duck dust
eager eagle early earth east echo edge egg elbow elder ember empty evening every fabric falcon family fancy farm fast
feast fence fern ferry few field finch fir fire first fish flame flat fleet flint flock floor flower flute fog forest
fork fox frame free fresh friend frost fruit full garden garlic gate ghost giant ginger glad glass glove goat gold goose
grain grape grass gravel gray great green guest guitar hall hammer hand harbor hare harp harvest hat hazel heart heavy
hedge helmet herb hidden high hill hollow honey hook horn horse hotel house hut ice idea inch ink inn iron island ivory
ivy jacket jam jar jasmine jelly jewel journey juice june jungle keen kettle kind king kitchen kite kitten knot ladder
lake lamb lamp lantern large lark last late laugh lawn leaf lean lemon letter lilac lily lime linen lion lively lizard
log long lotus loud lucky lunch lute magnet maple march market marsh mask mast meadow melody melon merry metal mild mill
mint mirror mist mitten morning moss moth mountain mouse mule music narrow near neat needle net new night noble north
oak oar oat ocean oil olive onion open orange orchard otter owl page paint pair palace palm pan paper parrot path pear
pearl pebble pen pencil pepper piano picture pigeon pillow pine plain planet plate plum pocket pony poplar poppy porch
pot potato proud pumpkin puppy purple quail quartz queen quick quiet quill rain raven ready red reed ribbon rich ridge
ring ripe river robin rock roof room root rose rough round royal ruby rug sage sail salt sand scarf sea seal second
secret seed shadow shallow sheep shelf shell ship shoe shore short shy silent silver simple sister sky slate slow small
smart smooth snail snow soft song south spark sparrow spider spoon spring spruce square stable stair star steady steam
stone storm story stove strange straw street string strong sugar summer swan sweet swift table tail tall tent thick thin
third thistle thunder tiger timber tin tiny tower town trail train tree trout tunnel turtle twig valley velvet vine
violet violin wagon walnut water wave wax west whale wheat white wide wild willow wind wing winter wise wolf wood yard
yellow young
"""
WORDS = _LIST.split()
"""512 plain words. Up to two of them name every id of a vocabulary of 262,000."""


def word_of(number: int) -> str:
    """A word for a number from 0 on: "river", or "quiet-river" where the list is too short; never the same for two."""
    higher, lower = divmod(number, len(WORDS))
    return f"{word_of(higher - 1)}-{WORDS[lower]}" if higher else WORDS[lower]
