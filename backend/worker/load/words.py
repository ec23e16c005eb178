"""Words for the token ids of a model with random weights, whose text is noise: so that it can be read along."""

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
