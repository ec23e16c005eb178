# ruff: noqa: E501
"""Hand-written beats of simple stories: the spine that a small teacher cannot give.

A plot is a list of beats, a beat is a list of ways to tell it, and a slot in braces is filled once a story, so that
names, pronouns and things stay the same from the first sentence to the last. `grammar.py` fills the slots.
"""

INTRO = (
    "Once upon a time, there was {a} named {n}.",
    "Once upon a time, there was {a} named {n}. {n} lived {p}.",
    "There once was {a} named {n} who lived {p}.",
    "{n} was {a}. {He} lived {p} with {his} family.",
    "{P} lived {a}. {His} name was {n}.",
    "A long time ago, {a} named {n} lived {p}.",
    "Once there was {a}. Everyone called {him} {n}.",
    "{n} the {k} was very {f}. {He} lived {p}.",
    "Far away, {p}, lived {a} named {n}.",
    "Do you know {n}? {n} is {a}, and this is {his} story.",
    "One day, {a} named {n} went [for a walk by the river|to the park|to the beach|into the forest].",
    "One day, {a} went to the [beach|park|market|forest|lake]. {His} name was {n}.",
    "{n} was {a} who lived {p}.",
    "{n} was {a}.",
    "{n} the {k} lived {p}. {He} was very {f}.",
    "Once upon a time, {p}, there lived {a} named {n}.",
    "Once upon a time, in a [small village|big forest|little town|far land], there lived {a}. {His} name was {n}.",
    "It was a {d} morning. {n} looked out of the window. {He} was {a}.",
    "It was a {d} day. {n} the {k} was [at home|outside|in the garden|still in bed].",
    "{n} and {m} were best friends. {n} was {a}, and {m} was {b}.",
    "This is a story about {n}, {a}.",
    "The {k} was very {f}. {His} name was {n}, and {he} lived {p}.",
    "The {f} {k} was called {n}. {He} lived {p}.",
    "There was once {a}. {He} was called {n}.",
    "{n} the {k} was [always|often|sometimes] {f}.",
    "It was a {d} day, and {n} the {k} was [happy|bored|in a good mood|hungry].",
    '"Good morning!" said {n} the {k}. {He} lived {p}.',
    '"Where are you going?" asked {n} the {k}. "[To the lake|Home|To school]," said {m}, {b}.',
    '"What a {d} day!" said {n}, {a} who lived {p}.',
    "Today, {n} the {k} got up very early.",
)
DAY = (
    "One day,",
    "One {d} morning,",
    "One {d} day,",
    "One afternoon,",
    "One evening,",
    "On a {d} day,",
    "Early in the morning,",
    "After breakfast,",
    "One summer day,",
    "One day after lunch,",
)
END = (
    "From that day on, {n} and {m} were best friends.",
    "{n} went home with a smile. It had been a good day.",
    "That night, {n} slept well and dreamed of {m}.",
    "{n} laughed, and {m} laughed too. The end.",
    "And they all lived happily ever after.",
    "{n} never forgot that day.",
    "When the sun went down, {n} was tired and happy.",
    "They ate {food} together and talked until it was dark.",
    '"This was the best day ever," said {n}. The end.',
    "{n} gave {m} a big hug. Then they walked home together.",
    "And if you go there today, you may still see {n} and {m} play together.",
    "{n} looked at the stars and felt very lucky.",
    "{His} mother kissed {him} good night. {n} closed {his} eyes and smiled.",
    "Since then, {n} and {m} have met every day.",
)
CLOSING = (
    "In the end, {n} went home and told everyone about it.",
    "{n} was tired and happy that night.",
    "That evening, {n} went to bed with a smile.",
    "And that was a day {n} never forgot.",
    "From then on, everyone was kind to {n}.",
    "Then it was time to go home. The end.",
    "{n} laughed and went home for supper.",
    "When the moon came up, {n} was fast asleep.",
    "And they all lived happily ever after.",
    "It was a good day for {n}. The end.",
    "{n} learned something that day, and never forgot it.",
    "{n} waved goodbye and went home.",
    "After that, {n} was not afraid any more.",
    "The next morning, {n} woke up and smiled.",
)

# Each plot: beats in order, each a tuple of ways to tell it.
PLOTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "lost": (
        (
            "{n} had a {c} {t}. {He} took it everywhere.",
            "The thing {n} loved most was a {c} {t}. It was a gift from {his} grandmother.",
            "{n} had only one toy, a little {c} {t}.",
        ),
        (
            "{day} {n} could not find the {t}. {He} looked under the bed. It was not there. {He} looked in the box. It was not there.",
            '{day} the {t} was gone. "Where is my {t}?" cried {n}. {He} looked everywhere.',
            "{day} {n} went for a walk. When {he} came home, the {t} was not in {his} bag. {He} was very sad.",
            "{day} {n} played outside, and then {he} forgot the {t}. When {he} came back, it was gone.",
        ),
        (
            '{n} met {m} the {l}. "Why are you sad?" asked {m}. "I lost my {t}," said {n}.',
            '{m}, {b}, saw that {n} was crying. "What is wrong?" {m_he} asked. {n} told {m_him} about the {t}.',
            'Then {n} saw {m} the {l}. "Have you seen a {c} {t}?" asked {n}. "No," said {m}, "but I can help you look."',
        ),
        (
            "They looked behind the trees. They looked near the water. They looked in the tall grass.",
            'They walked back the way {n} had come. "Look at the ground," said {m}. They walked very slowly.',
            "{m} had a good idea. They asked everyone they met. A bird had seen something {c} near the old wall.",
        ),
        (
            'At last {m} saw something {c} under a leaf. "Here it is!" {m_he} shouted. It was the {t}!',
            "There it was, behind a big stone. {n} picked up the {t} and jumped for joy.",
            "The {t} was in a nest, high up in a tree. {m} climbed up and brought it down.",
        ),
        (
            '"Thank you, {m}," said {n}. "You are a good friend."',
            '{n} was so happy. "We can play with it together," {he} said.',
            "{n} let {m} hold the {t} all the way home.",
        ),
    ),
    "dark": (
        (
            "{n} was not afraid of the rain or the wind. But {he} was afraid of the dark.",
            "Every night, {n} left the light on, because {he} did not like the dark.",
            "When the sun went down, {n} hid under {his} blanket.",
        ),
        (
            "{day} {n} came home late. It was dark, and {he} could not see the path.",
            'One night, the lamp went out. "Oh no!" said {n}. It was dark everywhere.',
            "One night there was a strange sound at the window. Tap, tap, tap. {n} began to shake.",
        ),
        (
            'Then {he} heard a voice. "Do not be afraid. It is only me, {m} the {l}."',
            'Somebody came closer. It was {m}, {b}. "Are you lost?" asked {m}.',
            '"Who is there?" asked {n}. "It is {m} the {l}," said a quiet voice. "I cannot sleep."',
        ),
        (
            '"Look up," said {m}. {n} looked up and saw a thousand stars. "You can only see them in the dark," said {m}.',
            'They sat down and listened. "That is the owl," said {m}. "That is the wind in the leaves. And that is the river." Now the night was not so strange.',
            "{m} gave {n} a little lamp. It was small, but it made a warm light.",
        ),
        (
            '"The night is beautiful," said {n}. {He} was not afraid any more.',
            "They counted the stars until {n} was sleepy.",
            "{m} took {his} hand, and they walked home together.",
        ),
    ),
    "share": (
        (
            "{n} had a big basket of {food}. {He} did not want to give any to the others.",
            '{n} found some {food}. "This is all mine," {he} said.',
            "{n} had a new {t}. {He} said that no one else could touch it.",
        ),
        (
            '{day} {m} the {l} came by. "May I have some too?" {m_he} asked. "No," said {n}. {m} went away and was sad.',
            '{day} {b} named {m} wanted to play with {n}. "Go away," said {n}. So {m} went away.',
        ),
        (
            "{n} sat alone under a tree. It was very quiet. It was not fun to be alone.",
            "Soon {n} was bored. There was nobody to laugh with.",
            "After a while, {n} felt bad. {He} thought about {m}.",
        ),
        (
            '{He} ran after {m}. "Wait!" {he} called. "I am sorry. Please come back."',
            '{n} went to the house of {m} and knocked on the door. "I was not kind," {he} said. "I am sorry."',
        ),
        (
            '"That is all right," said {m}. They sat down in the sun, and {n} shared everything.',
            '{m} smiled. "Thank you for saying sorry," {m_he} said. Then they played together all day.',
            "{m} was not angry. {m_He} had brought some {food2}, and they shared that too.",
        ),
        (
            '"It is better with two," said {n}.',
            "{n} found out that sharing was more fun than having.",
            "Now {n} always gives half to a friend.",
        ),
    ),
    "truth": (
        (
            "{n} liked to run in the house, but {his} mother had told {him} not to.",
            "{n} was often in a hurry, and {he} did not always look where {he} went.",
            "{n} liked to play with the ball inside.",
        ),
        (
            "{day} {he} ran too fast and hit the table. The {c} vase fell down and broke.",
            "{day} {n} kicked the ball, and it broke a window of the house of {m} the {l}.",
            "{day} {n} broke the {t} of {m} the {l}. Nobody saw it.",
        ),
        (
            "{n} was afraid. {He} hid behind the door and did not say a word.",
            '"Who did this?" everyone asked. {n} looked at the floor. "It was the wind," {he} said.',
            "{n} wanted to run away. {His} face was hot and {his} heart beat fast.",
        ),
        (
            "But that night {n} could not sleep. {He} knew that {he} had to tell the truth.",
            "{His} tummy hurt, because {he} knew that it was wrong.",
            "Then {he} thought about {m}, who was always honest.",
        ),
        (
            '{n} took a deep breath. "It was me," {he} said. "I am very sorry."',
            'So {n} went to {m} and said, "I broke it. I am sorry. I want to fix it."',
        ),
        (
            '"Thank you for telling the truth," said {m}. "That was brave." Together they fixed it with glue.',
            '{m} was not angry. "Everyone makes mistakes," {m_he} said. They cleaned up together.',
            "{n} helped {m} for a whole week, and then everything was fine again.",
        ),
    ),
    "bird": (
        (
            "{n} liked to walk among the trees and listen to the birds.",
            "Every morning, {n} went out to see what was new.",
            "{n} liked to look at small things, like bugs and leaves.",
        ),
        (
            "{day} {he} found a baby bird on the ground. It was too small to fly.",
            "{day} {he} heard a tiny voice. A little bird had fallen from its nest.",
            "{day} {n} saw a small bird that had hurt its wing.",
        ),
        (
            '"Poor little bird," said {n}. {He} wanted to help, but the nest was too high.',
            '"Do not worry," said {n}. "I will help you." But {he} did not know how.',
            "{n} put the bird in {his} hat to keep it warm.",
        ),
        (
            '{He} asked {m} the {l}. "I have a ladder," said {m}. "Let us use it."',
            'Then {m} the {l} came by. "I can climb," said {m_he}. "Give me the bird. I will be careful."',
            '{m}, {b}, knew what to do. "It needs water and seeds," said {m}. "And it needs to rest."',
        ),
        (
            "Slowly and carefully, they put the bird back into the nest. The mother bird sang a song for them.",
            "They took care of the bird for many days. Then one morning, it opened its wings and flew.",
            "Soon the little bird was well. It flew around the head of {n} and sang.",
        ),
    ),
    "race": (
        (
            "{n} was very fast. {He} told everyone about it.",
            "{n} was slow, but {he} never gave up.",
            "There was going to be a big race {p}. {n} wanted to win it.",
        ),
        (
            '{day} {m} the {l} said, "Let us run to the old bridge and back." "I will win," said {n}.',
            "{day} all the animals came to see the race. {n} stood next to {m} the {l}. One, two, three, go!",
        ),
        (
            "{n} ran as fast as {he} could. {m} was right behind {him}.",
            "They ran up the hill and down the hill. {n} was in front.",
            "At first {m} was faster. But {n} did not stop.",
        ),
        (
            'Then {m} fell over a stone. "Ouch!" {m_he} cried. {n} heard it and looked back.',
            "Then they came to a river, and there was no bridge. {m} could not swim.",
        ),
        (
            '{n} stopped. {He} wanted to win, but {he} also wanted to help. "Hold my hand," said {n}.',
            '"I will not leave you here," said {n}. {He} went back and helped {m}.',
        ),
        (
            "They came to the end together, hand in hand. Everyone clapped and cheered.",
            'Somebody else won the race that day. But {n} was not sad. "A friend is better than a prize," {he} said.',
            '"You are the real winner," said {m}, and everybody cheered for {n}.',
        ),
    ),
    "bake": (
        (
            "{n} wanted to bake a cake for {his} friend {m}.",
            "It was the birthday of {m} the {l}. {n} wanted to make something nice.",
            "{n} loved to cook. {He} made {food} every week.",
        ),
        (
            "{He} took flour, milk and eggs. But there was no sugar in the jar.",
            "{day} {he} put everything in a big bowl. But {he} forgot to look at the clock, and the cake was burned.",
            "{He} wanted to stir, but the bowl fell down. Flour was everywhere, even on {his} nose.",
        ),
        (
            '"Oh no," said {n}. "What can I do now?" {He} almost cried.',
            "{n} sat down on the floor. {He} did not know what to do.",
        ),
        (
            'Then there was a knock at the door. It was {m}. "It smells good here," said {m}. {n} told {m_him} everything.',
            '{m} looked in at the window and laughed. "You look like a snowman," {m_he} said. Then {n} had to laugh too.',
        ),
        (
            '"We can do it together," said {m}. {m_He} brought honey from home, and they started again.',
            "They cleaned the kitchen and made a new cake. {m} stirred, and {n} put the apples on top.",
        ),
        (
            "The cake came out warm and sweet. It was the best cake {n} had ever eaten.",
            "It was not a pretty cake, but it tasted very good. They ate it all.",
        ),
    ),
    "seed": (
        (
            "{n} found a little seed on the ground. It was brown and very small.",
            'An old farmer gave {n} a seed. "Take good care of it," he said.',
            "{n} wanted to have a garden, but {he} had only one seed.",
        ),
        (
            "{He} made a hole in the ground and put the seed in. Then {he} gave it some water.",
            "{n} put the seed into a pot and set it in the sun.",
        ),
        (
            '{n} waited. Nothing happened. "Maybe it is sleeping," said {n}.',
            'Every day {n} looked at it. One day, two days, three days. Nothing! "It will never grow," {he} said.',
        ),
        (
            '{m} the {l} came to look. "You have to wait," said {m}. "Good things take time."',
            '{m}, {b}, laughed. "You cannot hurry a seed," said {m}. "Let us sing for it." So they sang every day.',
        ),
        (
            "Then, after the rain, there was a tiny green leaf. {n} jumped up and down.",
            '{day} {n} saw something green. "It is growing!" {he} shouted.',
        ),
        (
            "The plant grew and grew. In summer it had a big {c} flower.",
            "In autumn there were sweet red apples for everyone.",
            "It grew taller than {n}. Bees came, and birds came, and everyone liked the flower.",
        ),
    ),
    "newcomer": (
        (
            "{n} was new {p}. {He} did not know anybody.",
            "{n} had just moved to a new house. {He} missed {his} old friends.",
            "{n} had no friends yet. {He} was too shy to talk.",
        ),
        (
            "{day} {he} saw the others play. {He} wanted to play too, but {he} did not know what to say.",
            "{day} {he} sat on a bench and watched the others. They played with a {c} {t}.",
        ),
        (
            'Then {m} the {l} came over. "Hello," said {m}. "Do you want to play with us?"',
            'Suddenly the {t} rolled to {his} feet. {m} the {l} came running. "Can you throw it back?" asked {m}.',
            '{b2} sat down next to {him}. "I am {m}," said the {l}. "I am a little shy too."',
        ),
        (
            '"Yes, please," said {n} in a very small voice.',
            'The face of {n} turned red. But then {he} smiled. "My name is {n}," {he} said.',
        ),
        (
            "They played all afternoon. {n} showed them a game from {his} old home, and everyone liked it.",
            "They built a little house out of sticks. {m} made the walls, and {n} made the roof.",
            "They ran and jumped and laughed. Soon {n} was not shy any more.",
        ),
        (
            '"Will you come back tomorrow?" asked {m}. "Yes!" said {n}.',
            'When {n} came home, {his} mother asked, "How was your day?" "I have a friend," said {n}.',
        ),
    ),
    "storm": (
        (
            "{n} had a small {c} boat. {He} liked to sail on the lake.",
            "{n} and {m} the {l} wanted to have a picnic by the water. They took {food} with them.",
            "{n} and {m} the {l} went for a long walk.",
        ),
        (
            "{day} the sky turned dark, and a strong wind came. The rain began to fall.",
            'Suddenly there was a loud boom. "A storm is coming," said {n}.',
        ),
        (
            '"What shall we do?" cried {m}. They were far from home.',
            "The wind took the hat of {n} and blew it away. They were wet and cold.",
        ),
        (
            '"I see a cave," said {n}. "We can wait there." They ran as fast as they could.',
            'They saw a light. It was the house of an old {k2}. "Come in, come in," said the old {k2}.',
            "They sat under a big tree and held a blanket over their heads.",
        ),
        (
            "They told each other stories until the rain stopped.",
            "Inside it was warm and dry. They had hot soup and listened to the rain.",
            "They sang loud songs, and the storm did not seem so bad.",
        ),
        (
            "Then the sun came out again. There was a big rainbow over the hill.",
            'After the storm, everything was fresh and green. "Look, a rainbow!" said {m}.',
        ),
    ),
    "stuck": (
        (
            "{n} liked to climb. {He} climbed on chairs, on walls and on trees.",
            "{n} was always curious. {He} wanted to know what was inside every hole.",
        ),
        (
            '{day} {he} climbed a very tall tree. But then {he} looked down. "Oh dear," said {n}. "How do I get down?"',
            "{day} {he} put {his} head into a jar, and it was stuck. {He} pulled and pulled, but it did not come off.",
            "{day} {he} fell into a deep hole. The walls were too high to climb.",
        ),
        (
            '"Help! Help!" {n} called. {m} the {l} heard it and came.',
            '{m}, {b}, was walking by. "What are you doing there?" asked {m}. "I am stuck," said {n}.',
        ),
        (
            "{m} pulled and pulled, but {m_he} was not strong enough.",
            '"I am too small," said {m}. "But I will get help. Wait here!"',
        ),
        (
            "Soon all the friends came. They brought a long rope. One, two, three, pull!",
            "The bear came, the goat came, and even the little mouse came. They all pulled together.",
        ),
        (
            'Pop! {n} was free. "Thank you, everyone," {he} said.',
            'Then {n} was free again. "Next time I will be more careful," {he} said, and everybody laughed.',
        ),
    ),
    "sleep": (
        (
            "It was late, but {n} could not sleep.",
            "The moon was in the sky, and everyone was asleep. Only {n} was awake.",
        ),
        (
            "{He} turned to the left. {He} turned to the right. {He} closed {his} eyes, but sleep did not come.",
            '"I am not tired," said {n}. {He} got up and looked out of the window.',
        ),
        (
            '{n} went to {m} the {l}. "I cannot sleep," said {n}. "Drink some warm milk," said {m}.',
            'Outside sat {m} the {l}. "Why are you awake?" asked {m}. "I do not know," said {n}.',
        ),
        (
            '"You can count sheep," said {m}. {n} counted one sheep, two sheep, three sheep.',
            "{m} told {him} a story about a little {c} boat that sailed to the moon.",
            "{m} sang a quiet song about the wind and the sea.",
        ),
        (
            "When {m} was done, {n} did not answer. {n} was fast asleep.",
            "Soon {his} eyes were small, and {he} was warm and sleepy.",
        ),
    ),
    "snow": (
        (
            "{n} had never seen snow before.",
            "It was winter, and {n} waited for the snow every day.",
        ),
        (
            'One morning, everything was white. "Snow!" shouted {n}. {He} ran outside without {his} coat.',
            "Then, one cold morning, small white flakes fell from the sky. {n} tried to catch one.",
        ),
        (
            '{m} the {l} was there too. "Let us make a snowman," said {m}.',
            '{m} the {l} had a {c} sled. "Come with me," said {m}. They went up the hill.',
        ),
        (
            "They made a big ball and a small ball. They used a carrot for the nose and two stones for the eyes.",
            "Whoosh! They went down the hill, faster and faster, and landed in the soft snow.",
        ),
        (
            '"I am cold," said {n}. {His} nose was red. So they went inside and had hot milk with honey.',
            '"The snowman looks cold," said {m}. So {n} gave it {his} scarf.',
        ),
        (
            'The next day, the sun was warm, and the snow was gone. "It will come back," said {m}. "Winter always comes back."',
            "All winter long, they played in the snow together.",
        ),
    ),
    "present": (
        (
            "Tomorrow was the birthday of {m} the {l}. {n} wanted to give {m_him} a present.",
            "{n} wanted to give {his} friend {m} something nice, but {he} had no money.",
        ),
        (
            "{He} looked at a {c} {t} in the shop, but it cost too much.",
            '"What can I give?" {n} thought. {He} thought all day long.',
        ),
        (
            '{He} asked {his} grandmother. "The best presents come from the heart," she said.',
            "Then {n} had an idea. {He} took paper, a pencil and some glue.",
        ),
        (
            "{n} painted a picture of {m} and {him_self}, under a big yellow sun.",
            "{n} made a {c} {t} out of wood. It took {him} all night.",
            "{n} picked flowers and made a crown out of them.",
        ),
        (
            'The next day, {n} was nervous. "It is not much," {he} said. {m} opened the box and was very quiet.',
            "At the party, there were many big presents. {n} put {his} small one next to them.",
        ),
        (
            '"You made this for me?" asked {m}. "It is the best present of all!"',
            "{m} put it on the wall, right over {m_his} bed.",
        ),
    ),
}
