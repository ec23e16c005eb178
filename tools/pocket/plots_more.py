# ruff: noqa: E501
"""More hand-written plots, and side remarks that fit between the beats of any plot; see `plots.py`."""

PLOTS_MORE: dict[str, tuple[tuple[str, ...], ...]] = {
    "wish": (
        (
            "{n} wanted to fly like a bird.",
            "{n} had a wish. {He} wanted to [fly over the houses|see the world from above|touch a cloud].",
            'Every night, {n} looked at the moon. "I want to go there," {he} said.',
        ),
        (
            "{day} {he} [climbed on a wall|stood on a chair], moved {his} arms up and down, and jumped. Bump! {He} landed on the ground.",
            "{day} {he} made two wings out of [paper|leaves|feathers] and ran down the hill. But {he} did not fly.",
        ),
        (
            '{m} the {l} saw it. "What are you doing?" asked {m}. "I want to fly," said {n}. "[But it does not work|But I cannot]."',
            '"Ouch!" said {n}. {m}, {b}, came and helped {him} up.',
        ),
        (
            '"Come with me," said {m}. They went to the park and sat on the swings. "Now close your eyes," said {m}.',
            "{m} tied a rope to a strong [branch|tree] and made a swing.",
            "{m} had a big {c} kite. They held the string together, and the wind was strong.",
        ),
        (
            "{n} went up and up. The wind was in {his} [hair|face]. It felt just like flying.",
            "Up, up, up! For a moment, the feet of {n} did not touch the ground.",
        ),
        (
            '"I can fly!" {n} [shouted|called|laughed]. "Almost," said {m}.',
            '"You do not need wings," said {m}. "You only need a friend to push."',
        ),
    ),
    "monster": (
        (
            "{n} heard a [strange|loud|funny] sound every night.",
            "{n} was sure that there was a monster under the bed.",
            "Everybody said that a monster lived [in the old house|in the cave|behind the hill].",
        ),
        (
            "{day} {n} wanted to find out what it was. {He} took a [lamp|candle|lantern] and went on tiptoe.",
            '{day} {n} said, "I want to see it with my own eyes." {He} [packed a bag|put on {his} boots] and went.',
        ),
        (
            "{He} heard it again. Grrr! {His} heart beat fast.",
            'Something moved. {n} saw two [big|bright] eyes. "Who is there?" {he} asked.',
        ),
        (
            'But it was not a monster. It was {m}, {b}. "I am hungry," said {m}. "That was my tummy."',
            "It was only {m} the {l}, who was [asleep|snoring|singing] in a corner.",
            'Out came {m} the {l}, and {m_he} was shaking. "Please do not hurt me," said {m}. "I am afraid of monsters."',
        ),
        (
            '{n} laughed and laughed. "You are not a monster at all," {he} said.',
            '"I was afraid of you, and you were afraid of me," said {n}. "How silly!"',
        ),
        (
            "{n} gave {m} some {food}, and they talked until morning.",
            "From then on, {n} was not afraid at night, because {he} knew who was there.",
        ),
    ),
    "help": (
        (
            "{n} wanted to be big and strong like {his} father.",
            '"You are too small," everyone said to {n}.',
            "{n} was the smallest of all.",
        ),
        (
            '{day} the others [built a bridge|carried stones|picked apples]. {n} wanted to help. "Go and play," they said.',
            "{day} the key of the [big door|village gate|school] fell into a [small hole|crack in the wall]. Nobody could reach it.",
        ),
        (
            "{n} sat down on a stone and [was sad|felt small|sighed].",
            '"I can never do anything," {n} thought.',
        ),
        (
            'Then {m} the {l} cried for help. {m_His} [foot|paw|hat] was stuck in a narrow place. "Who can get in there?" asked the others.',
            'Then {m}, {b}, had an idea. "Who is small enough to go in?" asked {m}. Everyone looked at {n}.',
        ),
        (
            '"I can!" said {n}. {He} [crawled|went] in, and a moment later {he} was back. {He} had done it!',
            "{n} was just the right size. In {he} went, and out {he} came. Everybody [cheered|clapped].",
        ),
        (
            '"It is good that you are small," said {m}.',
            '"You are small, but you are a great help," they said, and {n} was very proud.',
        ),
    ),
    "pet": (
        (
            "{n} had always wanted a pet.",
            "{n} found a little [kitten|puppy|duckling] in front of the door. It was wet and [cold|hungry].",
        ),
        (
            '"Can I keep it?" {n} asked {his} mother. "You have to take care of it every day," said {his} mother.',
            "{He} called it [Spot|Button|Snowy|Muffin], and {he} gave it a warm place to sleep.",
        ),
        (
            "{day} the door was open, and the little one ran away. {n} looked everywhere.",
            "{day} {n} wanted to play and forgot to give it food. The little one was very sad.",
        ),
        (
            '{m} the {l} helped. "Let us be quiet and listen," said {m}. They heard a tiny sound.',
            '"You have to think of others too," said {m} the {l}. {n} knew that {m} was right.',
        ),
        (
            "There it was, [behind the barn|under the stairs|in a big boot]. It was so happy to see {n}.",
            "{n} ran home with milk and a soft blanket. The little one [licked {his} hand|jumped into {his} arms].",
        ),
        (
            "After that, {n} took good care of it every single day.",
            "Now they are always together, in the sun and in the rain.",
        ),
    ),
    "song": (
        (
            "{n} loved to sing, but {he} was too shy to sing when others were there.",
            "{n} sang all day long. {He} sang in the morning and {he} sang in the evening.",
        ),
        (
            "{day} there was a [party|big feast|show] in the village. {n} was supposed to sing. {His} knees were shaking.",
            '{day} somebody said, "Stop that noise!" {n} stopped, and {he} did not sing any more.',
        ),
        (
            'Without the songs of {n}, it was very quiet. "Something is missing," said {m} the {l}.',
            '"I cannot do it," {n} said to {m} the {l}. "What if they laugh?"',
        ),
        (
            '"Sing for me," said {m}. "Only for me." So {n} closed {his} eyes and began to sing.',
            '{m} took {his} hand. "We can sing together," said {m}.',
        ),
        (
            "It was a song about [the sea|the stars|spring|a little boat]. One after the other, they all came to listen.",
            "The song was so beautiful that even the birds were quiet.",
        ),
        (
            '"More, more!" they all cried. {n} opened {his} eyes and smiled.',
            "When the song was over, everybody clapped, and {n} took a bow.",
        ),
    ),
    "map": (
        (
            "{n} found an old map in [the attic|a bottle|a book|a box].",
            "{his_grand} gave {n} an old map. There was a big {c} cross on it.",
        ),
        (
            '"That must be a treasure!" {n} [shouted|cried]. {day} {he} went to look for it, and {m} the {l} went with {him}.',
            '{day} {n} showed it to {m} the {l}. "Let us find the treasure," said {m}.',
        ),
        (
            "First they had to cross a [river|bridge|field]. Then they had to climb a [hill|high wall].",
            "They went past the old mill, around the pond and through the trees.",
        ),
        (
            "At the big stone, they began to dig. They dug and dug until their arms were tired.",
            'Then it began to rain, and the map got wet. "I cannot read it any more," said {n}. But {m} remembered the way.',
        ),
        (
            "Clonk! There was a box in the ground. They opened it slowly.",
            "Under the roots of an old tree they found a little {c} box.",
        ),
        (
            'There was no gold in it. There was only a note: "The best treasure is a good friend." {n} and {m} looked at each other and laughed.',
            "It was full of [shells|buttons|glass beads|old coins]. They shared everything, half for {n} and half for {m}.",
        ),
    ),
    "sick": (
        (
            "{m} the {l} was sick and had to stay in bed.",
            "{n} wanted to play with {m} the {l}, but {m} did not come.",
        ),
        (
            "{day} {n} went to visit {m_him}. {m} had a hot head and a red nose.",
            '{day} {n} knocked at the door. "I am sick," said a weak voice. "Achoo!"',
        ),
        (
            '"What do you need?" asked {n}. "I do not know," said {m}. "I feel [bad|so alone|cold]."',
            '{n} wanted to help. "Wait here," {he} said. "I will be back soon."',
        ),
        (
            "{n} made [hot soup|tea with honey] and brought a thick blanket.",
            "{n} brought a book and read a story about a [brave knight|little whale|funny bear].",
            "{n} picked flowers and put them next to the bed.",
        ),
        (
            "{m} drank it all and slept for a long time. The next day, {m_he} felt much better.",
            "After three days, {m} could get up again.",
        ),
        (
            '"You made me well," said {m}. "That is what friends are for," said {n}.',
            'Then {n} said, "Achoo!" Now {n} had to stay in bed, and {m} brought the soup.',
        ),
    ),
    "fight": (
        (
            "{n} and {m} the {l} were best friends. They did everything together.",
            "{n} and {m} the {l} lived next door to each other.",
        ),
        (
            '{day} they both wanted the same {t}. "It is mine!" said {n}. "No, it is mine!" said {m}. They pulled, and it broke.',
            '{day} they played a game. "You did not play fair," said {n}. "I did!" said {m}. They [shouted|were both angry].',
        ),
        (
            '"I will never play with you again," said {m}, and {m_he} went home.',
            "{n} went one way, and {m} went the other way.",
        ),
        (
            "{n} tried to play alone. But it was [boring|no fun|too quiet].",
            "The next day, {n} looked out of the window. On the other side, {m} looked out of the window too.",
        ),
        (
            'They opened their doors at the same time. "I am sorry," they both said at once.',
            "{n} painted a picture with two friends on it and put it under the door of {m}.",
        ),
        (
            "Then they had to laugh, and everything was good again.",
            '"Friends again?" asked {n}. "Friends again," said {m}.',
        ),
    ),
    "lesson": (
        (
            "{n} wanted to learn how to [swim|ride a bike|skate|dance|read].",
            "All the others could [swim|ride a bike|skate|dance|read], but {n} could not.",
        ),
        (
            '{day} {he} tried for the first time. It was very hard. "I cannot do this," said {n}.',
            "{day} {he} tried, and {he} [fell down|got it all wrong]. Some of the others laughed.",
        ),
        (
            '{m} the {l} did not laugh. "I could not do it either," said {m}. "I had to try a hundred times."',
            '"Do not give up," said {m}, {b}. "I will show you how."',
        ),
        (
            "They tried every day after [school|lunch|breakfast]. Step by step, it got better.",
            "{n} tried again, and again, and again. {m} held {his} hand.",
        ),
        (
            'Then {m} let go. "Look, {n}! You are doing it alone!"',
            "One morning, it worked. {n} could hardly believe it.",
        ),
        (
            '"I did it!" {n} [shouted|cried]. {He} was so proud.',
            "Now {n} helps the little ones who are still learning.",
        ),
    ),
    "boat": (
        (
            "{n} built a small boat out of [wood|an old box|a barrel].",
            "{n} had never seen the sea. {He} dreamed about it every night.",
        ),
        (
            '{day} {he} asked {m} the {l}, "Do you want to sail with me?" "Yes," said {m}, "but I cannot swim."',
            "{day} {n} and {m} the {l} got into a boat and sailed away. The water was blue and [calm|clear].",
        ),
        (
            "They sailed and sailed. After a while, there was water in the boat. It had a hole!",
            "Soon they could not see the land any more. There was only water, left and right.",
        ),
        (
            '"What now?" cried {n}. {m} put {m_his} [hat|sock|scarf] into the hole. "That will help," said {m_he}.',
            'Then a big [whale|dolphin|turtle] came up next to them. "Are you lost?" it asked. "Hold on to my back."',
        ),
        (
            "They came to a little island. There were [shells|birds|palm trees] everywhere, and the sand was warm.",
            "The waves carried them gently back to the beach.",
        ),
        (
            '"That was a real adventure," said {n}. "Next time we take two hats," said {m}.',
            "They sat on the sand, ate {food} and watched the sun go down.",
        ),
    ),
}
ASIDES = (
    "The sun was [shining|warm|bright], and the birds were singing.",
    "It was a [beautiful|quiet|lovely] day.",
    "The sky was blue, and there was not a single cloud.",
    "A [little|cool|soft] wind was blowing.",
    "The leaves were [red and yellow|green|falling].",
    "It smelled of [flowers|fresh bread|rain|grass].",
    "On the way, {he} saw a [butterfly|snail|squirrel|bee] and said hello to it.",
    "{n} was a little [hungry|tired|cold], but {he} did not mind.",
    "{n} thought about it for a long time.",
    "{n} took a deep breath.",
    "{n} scratched {his} head.",
    '"Hmm," said {n}.',
    '"Oh!" said {n}.',
    '"Are you sure?" asked {n}. "Yes, I am sure," said {m}.',
    '"Do not worry," said {m}. "It will be all right."',
    '"What a day!" said {m}.',
    '"I like your {c} hat," said {m}. "Thank you," said {n}.',
    '"Are you hungry?" asked {m}. They ate some {food}.',
    "{m} was [very kind|a good friend|always in a good mood].",
    "{m} was {b} who liked {food} more than anything else.",
    "{n} liked {m} very much.",
    "Somewhere a dog barked.",
    "Far away, a bell rang.",
    "A [frog|crow|duck|cricket] sat nearby and listened.",
    "The clouds looked like [sheep|boats|big pillows].",
    "{n} had a funny feeling in {his} tummy.",
    "{He} waited and waited.",
    "{He} counted to ten.",
    "{He} looked left, and {he} looked right.",
    "Time went by.",
    "{n} and {m} had known each other for a long time.",
    "They [walked|went] on, side by side.",
    "They both laughed.",
    "{n} did not know what would happen next.",
)
NEXT = (
    "The next day, {n} woke up early.",
    "A week later, {n} and {m} met again.",
    "But that is not the end of the story.",
    "The next morning, something new happened.",
    "Some days later, it was {m} who needed help.",
)
