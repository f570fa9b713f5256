"""Requests of one call that look like two: several sentences, two verbs for one act, a question that leans on a value.

Slots are the parameters of the function; set_alarm's `<time>` is both of its values.
"""

from collections.abc import Mapping

from twinspark_demo.documents.phrase import Phrase

_SOON = "{soon|tomorrow|next week|today|in an hour|on Monday|this evening}"
_TRAVEL = f"{{I|We|My brother|My friends|She}} {{will go|will travel|may move|will be|want to go}} to <city> {_SOON}"
_PERSON = "{She|He|My sister|My boss|My friend|A colleague} {is|lives|works|stays} in <city>"
_TELL = "{tell me|let me know|report it|say it|tell me about it|tell me the answer|tell me what you find}"
_WISH = "{would like to|want to|need to|must|have to}"
_DONE = "{tell me when it is done|let me know|confirm it|say when it is done|do it now|tell me if it worked}"
_END = "{.|.||!}"
_PLEASE = "{| please|, please| for me| now}"

TALES: Mapping[str, Phrase] = {
    "get_weather": Phrase(
        "{Should I take|Do I need|Shall I pack|Must I pack} {an umbrella|boots|a coat|warm clothes} {for|in} <city>? "
        "{Check|Look up|Get|Find} the {weather|forecast} {there|of the city|for it|first}{.|}",
        f"{_TRAVEL} and {{I|we}} {_WISH} know the weather {{there|of that city}}{_END}",
        f"{_TRAVEL}. {{How is|What is|What about}} the weather {{there|in that city|in town}}?",
        f"{_TRAVEL}. {{Will it rain there?|Is it cold there?|Is it warm outside there?|Do I need a coat?}}",
        f"{{Look at|Check|Get|Find|Look up}} the {{weather|forecast}} {{in|for}} <city> and {_TELL}{_END}",
        f"{_PERSON}. {{Tell me the|Get me the|Look up the|What is the|Check the}} {{weather|forecast}} there{_END}",
        "{The city is|The place is|I am in|I mean} <city>{. |: }{Get|Check|Tell me} the weather{ there| of today|}{.|}",
        "{A question about|I think of|It is about} <city>. What is the {weather|temperature} there?",
        "The weather in <city>{. What|: what} is it {now|today|like}?",
    ),
    "get_time": Phrase(
        "{Is it|Would it be} {still early enough|a good hour|night|morning|a good moment|dinner time} "
        "{|for a call |to call somebody |to phone my uncle }in <city>? {Look up|Get|Check|Find|Tell me} the {time"
        "|local time|hour}{| there| of the city}{.|}",
        f"{_PERSON}. {{What time is it there|What is the time there|How late is it there|What time is it}}?",
        f"{_PERSON} and I {_WISH} know the {{time|local time|hour}} there{_END}",
        f"{{Look at|Check|Read|Look up}} the {{clock|time}} in <city> and {_TELL}{_END}",
        f"{_TRAVEL}. {{What time is it there now?|Tell me the time there.|What is the local time there?}}",
        f"I {_WISH} call {{somebody|a shop|a friend|my aunt}} in <city>. {{What is the time there?|How late is it?}}",
        "{The city is|The place is|I am in|I mean} <city>{. |: }{Get|Check|Tell me} the time{ there|}{.|}",
        "The time in <city>{. What|: what} is it{| now| there}?",
    ),
    "get_stock_price": Phrase(
        "{Should I sell|Should we buy|Is it wise to keep|Is it time to sell} <symbol>? {Check|Look up|Get|Tell me} "
        "the {stock |share |}price{| first| of it| of the stock}{.|}",
        f"I {_WISH} {{buy|sell|watch}} <symbol>. {{What does a share cost|What is the stock price|How much is a "
        f"share}}?",
        f"{{Look up|Check|Find|Get}} the {{share|stock}} price of <symbol> and {_TELL}{_END}",
        f"{{Look at|Check|Find}} the stock <symbol> and tell me {{what it costs|its price|the price|how much it "
        f"is}}{_END}",
        "{My father|A friend|My boss|The bank} {bought|sold|likes|owns} <symbol>. {How much is a share?|What is the "
        "price of a share?|Get me the share price.|Tell me the stock price.}",
        "{The symbol|The stock|The company} is <symbol>. {What does a share of it cost?|Tell me the share price.|"
        "What is the price?|Check its stock price.}",
        f"I have {{some|ten|many|a few}} shares of <symbol> and {_WISH} know the price{_END}",
        "The stock <symbol>{. What|: what} does it cost{| now| today}?",
    ),
    "get_population": Phrase(
        "{Is <country> crowded|Is <country> nearly empty|Do many live in <country>}? {Look up|Find|Tell me|Check} {how "
        "many people live there|the population|its population|the number of people}{.|}",
        "{I read a book about|My friend comes from|We moved to|She was born in} <country>. {How many people live "
        "there?|"
        "What is the population there?|How many inhabitants does it have?|Tell me its population.}",
        f"{{Look up|Find|Check|Get}} the {{population|number of people}} of <country> and {_TELL}{_END}",
        f"I {_WISH} {{write|talk|learn}} about <country> and {_WISH} know {{how many people live there|its "
        f"population}}{_END}",
        "{The country is|I mean|It is about|I think of} <country>. {How many people live there?|What is the "
        "population?|"
        "Get the population.|Count the inhabitants.}",
        "{Take|Look at} <country> and tell me {how many people live there|how many people it has|its population}{.|}",
        "<country> is {big|small|far away|a fine country}. {How many people does it have?|What is its population?}",
        "The population of <country>{. What|: what} is it?",
    ),
    "translate": Phrase(
        "{Does <word> sound nice|Do they have <word>|Is <word> long|Is <word> hard to say} in <language>? "
        "{Translate it|Translate the word|Give me the translation}{| into that language| please}{.|}",
        f"{{Take|Look at|Use}} the word <word> and {{translate it|put it|turn it}} into <language>{_END}",
        f"{{Translate|Say}} <word> {{into|to}} <language> and {_TELL}{_END}",
        "I {found|heard|read|saw} the word <word>. {How do you say it in <language>?|What does it mean in <language>?|"
        "Translate it into <language>.|What is that word in <language>?}",
        f"I {{speak|learn|study|write}} <language> and {_WISH} say <word>{{. Translate it.|. What is the word?}}",
        "{The word|My word} is <word>. {Translate it to <language>.|I need it in <language>, so translate it.|"
        "What is it in <language>, this word?}",
        f"I {_WISH} say <word> to a friend. {{He|She}} speaks <language>. {{Translate it|Translate the word}}{_END}",
        "{My text is in <language>|We talk in <language>}. {What is the word for|Give me the word for|Translate} "
        "<word>{?|}",
    ),
    "send_message": Phrase(
        "{Does <person> know|Did anybody tell <person>|Has <person> heard it}? {|I think not. }{Send a message"
        "|Write a message|Send the message|Send this}: <text>",
        f"{{Write|Make}} the message '<text>' and send it to <person>{_END}",
        f'{{Write|Send}} <person> the message "<text>" and {_DONE}{_END}',
        "<person> {is at home|is late|waits for me|has a phone|does not know}. {Send this message|Write a message}: "
        "<text>",
        "{Open the phone|Take the phone|Go to the messages} and send <person> this {message|text}: <text>",
        "{I have to tell <person> something|There is news for <person>}. {Send|Write} the message '<text>'{.|}",
        "I have a message. {It is for|It goes to|Send it to} <person>: <text>",
        f"The message is '<text>'. {{Send it to|It goes to|It is for}} <person>{_PLEASE}{_END}",
    ),
    "set_alarm": Phrase(
        "{Will I be awake|Can I be up|Will I wake up} {at|by} <time>? {Set an alarm for it|Set the alarm|Better set "
        "an alarm|Wake me then}{.|}",
        f"{{Set|Put}} {{the|an|my}} alarm {{for|to|at}} <time> and {{wake me|turn it on|start it|wake me up}}{_END}",
        f"{{Set|Make}} an alarm {{for|at}} <time> and {_DONE}{_END}",
        "{I get up|I must be awake|The bus leaves|We start|My shift starts} at <time>. {Set an alarm.|Set the alarm "
        "for it.|"
        "Wake me then.|Please wake me.|Put an alarm on that time.}",
        "{I am tired|I go to bed now|It is late|I have a test}. {Set the alarm for|Wake me up at|Set an alarm at} "
        "<time>{.|}",
        f"I {_WISH} {{get up|be up|leave}} at <time> and need an alarm {{for it|then|at that time}}{_END}",
        "{The time is|I mean|I say} <time>. {Set an alarm for it.|Set the alarm.|Wake me then.}",
        "{Take the clock|Open the clock|Go to the clock} and set an alarm {for|at} <time>{.|}",
    ),
    "set_timer": Phrase(
        "{Are <minutes> minutes enough|Is the egg done in <minutes> minutes|Can you wait <minutes> minutes}? "
        "{Set a timer|Start the timer|Set a timer and we will see|Start a timer for it}{.|}",
        f"Set {{the|a}} timer {{for|to}} <minutes> minutes and {{start it|let it run|begin|run it}}{_END}",
        f"{{Start|Set}} a timer {{of|for}} <minutes> minutes and {_DONE}{_END}",
        "{The eggs|The rice|My soup|The wash|The bread|A game} {needs|takes|has} <minutes> minutes. {Start a timer.|"
        "Set a timer for it.|Set the timer.|Start the countdown.|Start the timer now.}",
        "{I cook|I bake|I train|I rest|We play} for <minutes> minutes and {need|want} a timer{ for that|}{.|}",
        "{I am in the kitchen|I make tea|The water boils}. {Set|Start} a timer {for|of} <minutes> minutes{.|}",
        "{It takes|I want|I say|I have} <minutes> minutes{. |: }{Set a timer.|Start a timer.|Count down the minutes.}",
        f"{{Take|Open}} the timer and set it to <minutes> minutes{_PLEASE}{_END}",
    ),
    "play_song": Phrase(
        "{I am in a good mood|I am in the right mood|We are all in a party mood|The evening is long|My head hurts"
        "|It is too quiet|The radio is broken}. {Play|Start|Put on} the {song|track} <title>{| for me| for us| now"
        "| please}{.|}",
        "{Do you know|Have you got|Did you hear|Is there} the {song|track} <title>? {Play it|Put it on|Let me hear it"
        "|Start it}{.| for me.|}",
        f"{{Find|Look for|Take|Get|Choose}} the {{song|track}} <title> and play it{_PLEASE}{_END}",
        f"{{Play|Start}} the song <title> and {{let me hear it|turn it up|make it loud|{_DONE[1:-1]}}}{_END}",
        "{I am sad|We have a party|I want to dance|I feel like music|I like music|I am Ben|I am at home}. {Play the "
        "song|"
        f"Play the track|Put on the song|Let me hear the song}} <title>{_PLEASE}{_END}",
        "{My friends love|She sang|We sing|I know|I miss} the song <title>. {Play it.|Put it on.|Can you play it?|"
        "Let me hear it.}",
        f"I {_WISH} {{dance|sing|relax|sleep}}, so {{start|play|put on}} the song <title>{_END}",
        "{The song|The title of the song|The track} is <title>. {Play it.|Start it.|Put it on.|Play it for me.}",
        f"I {{like|love}} <title> and {_WISH} hear that song{_END}",
    ),
    "convert_money": Phrase(
        "{Are <amount> dollars enough|Is a bill of <amount> dollars much} in <currency>? {Convert it"
        "|Convert the money|Do the conversion}{.|}",
        f"{{Take|Count}} <amount> dollars and {{convert|change|exchange}} {{it|them}} {{to|into}} <currency>{_END}",
        f"{{Convert|Change|Exchange}} <amount> dollars {{to|into}} <currency> and {_TELL}{_END}",
        f"{{Convert|Work out the value of}} <amount> <currency> and {_TELL}{_END}",
        "I {have|found|won|got|saved} <amount> dollars. {How much is that in <currency>?|Convert it to <currency>.|"
        "What is it worth in <currency>?|Change it into <currency>.}",
        "I {have|found|won|got|need} <amount> <currency>. {How much money is that?|What is that worth?|Convert it.|"
        "How much is it in dollars?}",
        f"{{A phone|The trip|My room|A bike}} costs <amount> <currency> and I {_WISH} know {{what that is worth|how "
        f"much "
        f"that is}}{_END}",
        "{The price is|The sum is|My bill is} <amount> <currency>. {Convert it.|Convert the money.|What is it worth?}",
    ),
    "search_files": Phrase(
        "{Somewhere|Deep|Hidden} {in my computer|in these folders|on the server|in the archive|on my desk} {lies|is"
        "|must be|hides|sits} {the file|a file named|a file called} <name>{. |: }{Search for it|Look for it|Find it"
        "|Find it for me|Look it up}{.|}",
        "{I know|I believe|They say} that there are {files|some files|many files} {named|called} <name>{| here"
        "| on the computer}. {Search for them|Find them|Look for them|Look where they are}{.|}",
        "{Did I delete|Have I lost|Did somebody move} the {file|files} <name>? {Search for it|Find it|Look for it"
        "|Search for them}{.|}",
        f"{{Find|Search|Look for|Search for}} the file <name> and {{show me where it is|tell me where it is|tell me "
        f"the "
        f"place|give me the list|{_TELL[1:-1]}}}{_END}",
        "{I cannot find|I miss|I need|I lost} the file <name>. {Where is it?|Search for it.|Find it.|Look for it.|"
        "Can you find it?}",
        "{Look on|Search|Go through} {my|the} {disk|computer|folders} and find {the file|files named|files called} "
        "<name>{.|}",
        f"I {{saved|made|wrote|got}} a file called <name> and {_WISH} find it{_END}",
        "{The file|My file} is called <name>. {Where is it?|Find it.|Search for it.|Look where it is.}",
        "{It is on the disk|I am at work|My disk is full}. {Search for|Find|Look for} {the file|files named} <name>{.|"
        "}",
        "{Is there|Do I have} a file <name>{? Look for it.|? Find it.|? Search for it.}",
    ),
    "read_file": Phrase(
        "{Is <path> worth reading|Is there anything in <path>|Is <path> empty}? {Read it|Open it|Read the file"
        "|Show it to me}{.|}",
        f"{{Open|Take|Get}} the file <path> and {{read it|show me what it says|print it|show the text|read it to me|"
        f"tell me "
        f"what is in it|tell me what it says|show me the content}}{_END}",
        f"Read {{the file |}}<path> and {{tell me what it says|tell me the text|show it to me|{_TELL[1:-1]}}}{_END}",
        "{I got|I wrote|She sent me|I saved|There is} the file <path>. {What does it say?|Read it.|Open it.|What is "
        "in it?|"
        "Show me the content.|Read it to me.}",
        f"I {_WISH} know what is in {{the file |}}<path>, so {{open it|read it}}{_END}",
        "{My text is in|The text is in|I need the text in} <path>. {Open it.|Read it.|Show it.|Print it.}",
        "{I have no glasses|I am at work|My eyes hurt|It is important}. {Read|Open|Show me} the file <path>{.|}",
        "The file <path>{. What|: what} does it say?",
    ),
    "book_table": Phrase(
        "{Is <restaurant> full|Is there room at <restaurant>|Is <restaurant> open}? {Book|Reserve|Get} a table for "
        "<people>{ people|}{.|}",
        f"{{Call|Go to|Choose|Take}} <restaurant> and {{book|reserve}} a table for <people>{_END}",
        f"{{Book|Reserve}} a table {{at|in}} <restaurant> for <people> {{people |}}and {_DONE}{_END}",
        "{My mother has a birthday|We are hungry|I have guests|It is Friday}. {Book|Reserve|Get} a table at "
        "<restaurant> "
        "for <people>{ people|}{.|}",
        "We are <people>{ people|}. {Book a table at|Reserve a table at|Get us a table at} <restaurant>{.|}",
        f"{{I|We}} {_WISH} eat at <restaurant>{{ today| soon|}}. {{Book|Reserve|Get}} a table for <people>{{ people|"
        f"}}{_END}",
        "{The restaurant|The place} is <restaurant>. {We are <people>, book a table.|Book a table for <people>.|"
        "Reserve a "
        "table for <people> people.}",
        f"<people> {{guests|friends|people}} come {_SOON} and we need a table at <restaurant>{{.|}}",
    ),
    "get_distance": Phrase(
        "{Is <origin> far from <target>|Can I walk from <origin> to <target>|Is it far from <origin> to <target>}? "
        "{Tell me|Look up|Get|Check} {the distance|how far it is|the km}{.|}",
        f"{{Take|Look at|Check}} the way from <origin> to <target> and tell me {{how far it is|the distance|the "
        f"km}}{_END}",
        f"{{Measure|Look up|Find|Get}} the distance {{from <origin> to|between <origin> and}} <target> and "
        f"{_TELL}{_END}",
        "{I am in|I start in|We live in|The bus starts in} <origin>. {How far is it to <target>?|How far is <target> "
        "from here?|"
        "What is the distance to <target>?|How many km is it to <target>?}",
        f"{{We|I|They}} {{go|drive|fly|run|travel}} from <origin> to <target> {_SOON}. {{How far is that?|How far is "
        f"it?|"
        "What is the distance?|How many km is that?}",
        f"I {_WISH} {{go|drive|fly|ride}} from <origin> to <target> and {_WISH} know {{how far it is|the "
        f"distance}}{_END}",
        "{The trip starts in|I leave} <origin> and {ends in|go to|drive to} <target>. {How far is that?|What is the "
        "distance?|Tell me how far that is.}",
        "The cities are <origin> and <target>. {How far apart are they?|What is the distance?|How far is it?}",
    ),
    "create_note": Phrase(
        "{Will I remember this|Can I keep all this in mind|Did I write it down}? {Make a note|Write a note"
        "|Save a note|Better make a note}: <text>",
        f"{{Take|Open|Make|Start}} a note and write '<text>'{{| in it| there}}{_END}",
        f'{{Write|Make|Save}} the note "<text>" and {{keep it|save it|{_DONE[1:-1]}}}{_END}',
        "{I forget everything|I have to remember something|My memory is bad|I have an idea}. {Make|Write|Take|Save} a "
        "note: "
        "<text>",
        "{Take a pen|Open my notes|Go to my notes} and write down: <text>",
        f"I {_WISH} {{keep|remember|save}} this and need a note: <text>",
        "{The text|My text|The idea} is '<text>'. {Make a note.|Write a note with it.|Put it in a note.|Save it as a "
        "note.}",
        "I {thought of|heard|read} '<text>'. {Make a note of it.|Note it down.|Write it down.|Save that as a note.}",
    ),
    "turn_on": Phrase(
        "{Why is it so dark|Is it cold here|Can you reach it|Are my hands full}? {Turn on|Switch on|Start} the <device>"
        "{| please| for me}{.|}",
        "{I cannot|I can not|Nobody can} {find|see|get to} the {button|remote|plug}. {Turn on|Switch on|Start} the "
        "<device>{| please| for me| for us}{.|}",
        f"{{Go to|Find|Take|Look for}} the <device> and {{turn it on|switch it on|start it}}{_PLEASE}{_END}",
        f"{{Turn on|Switch on|Start}} the <device> and {{let it run|leave it on|{_DONE[1:-1]}}}{_END}",
        "{I am cold|I come home soon|It is late|I cannot see|I am in the room|We are here}. {Turn on the <device>|"
        "Turn the "
        f"<device> on|Switch on the <device>}}{_PLEASE}{_END}",
        "I {need|want to use|have|bought|see} the <device>. {Turn it on.|Switch it on.|Can you turn it on?|Start it.}",
        f"I {{need|want to use}} the <device>, so {{turn it on|switch it on|start it}}{_PLEASE}{_END}",
        "{The device|My device|It} is {called |}<device>. {Turn it on.|Switch it on.|Power it on.}",
        "{Is the <device> off|Why is the <device> off|Is the <device> on}? {Turn it on.|Switch it on.}",
    ),
}
