"""The words of the built-in corpus as tables, with the combinations that make sense.

A noun has tags ("person", "thing", ...); verbs and adjectives name the tags of the nouns they go with, so that bread
does not sleep. data/synthetic/language/lexicon.py reads the tables.
"""

# Nouns: English (and an irregular plural) | German article, singular, plural | tags.
# "weak": takes -n outside the nominative.
# "other": nobody owns it ("my king"). "one": nobody owns two ("my mothers"). "inside": one can go into it.
NOUNS = """
man men | der Mann Männer | person adult other
woman women | die Frau Frauen | person adult other
child children | das Kind Kinder | person
boy | der Junge Jungen | person other weak
girl | das Mädchen Mädchen | person other
teacher | der Lehrer Lehrer | person adult
doctor | der Arzt Ärzte | person adult
student | der Student Studenten | person adult weak other
neighbor | der Nachbar Nachbarn | person adult weak relation
friend | der Freund Freunde | person adult relation
guest | der Gast Gäste | person adult
farmer | der Bauer Bauern | person adult other weak
baker | der Bäcker Bäcker | person adult other
artist | der Künstler Künstler | person adult other
king | der König Könige | person adult other
queen | die Königin Königinnen | person adult other
mother | die Mutter Mütter | person adult relation one
father | der Vater Väter | person adult relation one
sister | die Schwester Schwestern | person adult relation
brother | der Bruder Brüder | person adult relation
aunt | die Tante Tanten | person adult relation
uncle | der Onkel Onkel | person adult relation
dog | der Hund Hunde | animal pet
cat | die Katze Katzen | animal pet
horse | das Pferd Pferde | animal pet
bird | der Vogel Vögel | animal
mouse mice | die Maus Mäuse | animal
cow | die Kuh Kühe | animal
bear | der Bär Bären | animal wild weak other
lion | der Löwe Löwen | animal wild weak other
book | das Buch Bücher | thing text gift lying colored lent
letter | der Brief Briefe | text write send paper lying
picture | das Bild Bilder | thing gift send view lying
key | der Schlüssel Schlüssel | thing gift lying
cup | die Tasse Tassen | thing gift standing colored
bag | die Tasche Taschen | thing gift opening lying colored
lamp | die Lampe Lampen | thing broken standing colored
clock | die Uhr Uhren | thing broken view standing colored
knife knives | das Messer Messer | thing lying
hat | der Hut Hüte | thing gift lying colored
coat | der Mantel Mäntel | thing gift lying colored
newspaper | die Zeitung Zeitungen | thing text lying lent
bottle | die Flasche Flaschen | thing opening gift standing colored
ball | der Ball Bälle | thing toy gift lying colored
ring | der Ring Ringe | thing gift lying
flower | die Blume Blumen | thing gift view lying colored
box | die Kiste Kisten | thing opening send standing colored
apple | der Apfel Äpfel | food gift lying
egg | das Ei Eier | food lying
cake | der Kuchen Kuchen | food gift standing
potato | die Kartoffel Kartoffeln | food lying
carrot | die Karotte Karotten | food lying
pear | die Birne Birnen | food gift lying
table | der Tisch Tische | furniture broken
chair | der Stuhl Stühle | furniture broken
bed | das Bett Betten | furniture
shelf shelves | das Regal Regale | furniture
door | die Tür Türen | opening broken part
window | das Fenster Fenster | opening broken part
car | das Auto Autos | vehicle broken lent
bicycle | das Fahrrad Fahrräder | vehicle broken lent
boat | das Boot Boote | vehicle broken lent
train | der Zug Züge | transport
bus buses | der Bus Busse | transport
house | das Haus Häuser | building place inside view
school | die Schule Schulen | building place inside
church | die Kirche Kirchen | building place inside sight view
museum | das Museum Museen | building place inside sight other
hotel | das Hotel Hotels | building place inside other
garden | der Garten Gärten | place inside sight view
forest | der Wald Wälder | place inside view other
village | das Dorf Dörfer | place inside sight settlement view
city | die Stadt Städte | place inside sight settlement view
kitchen | die Küche Küchen | inside room
market | der Markt Märkte | place at-auf sight other
bridge | die Brücke Brücken | place on-auf view other
station | der Bahnhof Bahnhöfe | place at-an other
river | der Fluss Flüsse | place at-an view other
"""

# Adjectives: English | German (and its stem before endings) | tags of the nouns it suits | quality.
# What has one colour, size or age is not said to have another.
ADJECTIVES = """
old | alt | adult animal thing paper furniture vehicle building place transport | age
young | jung | adult animal | age
new | neu | thing paper furniture vehicle building part | age
small | klein | person animal thing paper furniture vehicle building place room food part | size
big | groß | animal thing furniture vehicle building settlement food part | size
black | schwarz | animal colored vehicle | color
white | weiß | animal colored building | color
red | rot | colored vehicle furniture part | color
blue | blau | colored vehicle furniture part | color
green | grün | colored vehicle part | color
expensive | teuer teur | thing furniture vehicle food | price
cheap | billig | thing furniture vehicle food | price
happy | glücklich | person | mood
sad | traurig | person | mood
tired | müde müd | person animal | tiredness
sick | krank | person animal | health
rich | reich | adult | wealth
friendly | freundlich | person pet | manner
clever | klug | person pet | mind
hungry | hungrig | person animal | hunger
famous | berühmt | adult sight | fame
beautiful | schön | thing sight view vehicle | beauty
heavy | schwer | furniture opening | weight
fresh | frisch | food | freshness
sweet | süß | food | taste
quiet | ruhig | sight room | sound
slow | langsam | transport vehicle animal | speed
"""

# Verbs: English (regular, or base past participle; "+" joins the -ing form; "~" precedes a particle)
#      | German, as german.parse_verb_forms reads it ("s:" marks sein in the perfect)
#      | frame (with a preposition: English, German, case) | tags of subjects | tags of objects | traits
VERBS = """
sleep slept slept | schlafen schläft schlief geschlafen | none | person animal | - | place
work | arbeiten | none | person | - | place
sing sang sung | singen singt sang gesungen | none | person | - | place voice
dance | tanzen | none | person | - | place
laugh | lachen | none | person | - | place voice
swim swam swum +swimming | s:schwimmen schwimmt schwamm geschwommen | none | person pet | - | speed
wait | warten | none | person pet | - | place
play | spielen | none | person pet | - | place
arrive | s:an|kommen kommt kam gekommen | none | person transport | - |
depart | s:ab|fahren fährt fuhr gefahren | none | transport | - |
wake woke woken ~up | s:auf|wachen | none | person animal | - | accident
return | s:zurück|kommen kommt kam gekommen | none | person | - |
shop shopped shopped +shopping | ein|kaufen | none | person | - | place
see saw seen | sehen sieht sah gesehen | object | person animal | person animal thing transport | moment place
find found found | finden findet fand gefunden | object | person | thing paper animal | moment place
buy bought bought | kaufen | object | person | thing food vehicle furniture pet | place
sell sold sold | verkaufen verkauft verkaufte verkauft | object | person | thing food vehicle furniture | place
look ~for | suchen | object | person | thing paper animal person | place
eat ate eaten | essen isst aß gegessen | object | person | food | place speed
write wrote written | schreiben schreibt schrieb geschrieben | object | person | write | place speed
carry | tragen trägt trug getragen | object | person | thing paper furniture | care
lose lost lost | verlieren verliert verlor verloren | object | person | thing paper | moment place accident
visit | besuchen besucht besuchte besucht | object | person | person sight |
paint | malen | object | person | animal view person |
repair | reparieren repariert reparierte repariert | object | person | broken | care
clean | putzen | object | person | room part vehicle furniture | care
love | lieben | object | person | person animal | state
know knew known | kennen kennt kannte gekannt | object | person | person sight | state
need | brauchen | object | person | thing paper food vehicle furniture | state
have had had | haben hat hatte gehabt | object | person | thing paper pet vehicle | state
meet met met | treffen trifft traf getroffen | object | person | person | place
forget forgot forgotten +forgetting | vergessen vergisst vergaß vergessen | object | person | thing | moment accident
invite | ein|laden lädt lud geladen | object | person | person |
call | an|rufen ruft rief gerufen | object | person | person | place
open | auf|machen | object | person | opening | care
close | zu|machen | object | person | opening | care
collect | ab|holen | object | person | person gift |
look ~at | an|sehen sieht sah gesehen | object | person animal | view person animal |
borrow | aus|leihen leiht lieh geliehen | object | person | lent |
help | helfen hilft half geholfen | dative | person | person | place
thank | danken | dative | person | person |
follow | s:folgen | dative | person animal | person animal | speed
listen ~to | zu|hören | dative | person | person | place
belong ~to | gehören gehört gehörte gehört | dative | thing paper vehicle pet | person | state
give gave given | geben gibt gab gegeben | give | person | gift text |
show showed shown | zeigen | give | person | gift text furniture |
send sent sent | schicken | give | person | text send |
bring brought brought | bringen bringt brachte gebracht | give | person | gift food text | speed
offer | an|bieten bietet bot geboten | give | person | food gift |
wait | warten | preposition for auf accusative | person | person transport | place
speak spoke spoken | sprechen spricht sprach gesprochen | preposition with mit dative | person | person | place voice
play | spielen | preposition with mit dative | person pet | person pet toy | place
dream | träumen | preposition of von dative | person | person animal gift vehicle | accident
laugh | lachen | preposition about über accusative | person | person | voice
go went gone | s:gehen geht ging gegangen | go | person | building inside at-an at-auf on-auf | speed
run ran run +running | s:laufen läuft lief gelaufen | go | person animal | building inside at-an at-auf on-auf | speed
drive drove driven | s:fahren fährt fuhr gefahren | go | person | building settlement at-an on-auf at-auf | outside
come came come | s:kommen kommt kam gekommen | come | person animal | inside |
lie lay lain | liegen liegt lag gelegen | stand | lying | - | state
stand stood stood | stehen steht stand gestanden | stand | standing furniture vehicle | - | state
place | legen | put | person | lying | care
rain | regnen regnet regnete geregnet | none | - | - | weather
snow | schneien schneit schneite geschneit | none | - | - | weather
say said said | sagen | that | person | - |
believe | glauben | that | person | - | state
hope | hoffen | that | person | - | state
ask | fragen | whether | person | - |
try | versuchen versucht versuchte versucht | to | person | - |
plan planned planned +planning | planen | to | person | - |
"""
