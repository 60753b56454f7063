"""Word lists that tell what an English name is: plain data, no code beyond splitting strings.

Takes nothing, gives frozen sets and small maps; knows nothing of texts. They give types only: which words are a name at
all stands in lexicon.py. Every list is a hint.
"""

from __future__ import annotations

from graphrag_mcp.lexicon import AMBIGUOUS_HEADS, DEMONYMS, FIRST_TYPE, GIVEN, HEAD_TYPE, MONTHS, PLACES


def _kinds(rows: dict[str, str]) -> dict[str, str]:
    return {word: kind for kind, words in rows.items() for word in words.split()}


# The last word of a name of several words; not read in "is a ...".
LAST = HEAD_TYPE | _kinds({
    "organization": """
        cooperative holdings industries technologies partners brothers media labs news tribune herald gazette insurance foods electric
        electronics pharmaceuticals chemical communications telecom productions theatre theater philharmonic choir ensemble seminary
        conservatory tribunal guild legion fleet squadron battalion corps guard patrol guards rangers consortium conglomerate bros
        studio magazines broadcasting wikipedia chapter senators legislature cabinet treasury exchange regiment infantry cavalry
        yankees lakers devils giants bulls""",
    "location": """
        heights beach springs plains grove crossing junction landing shores coast hollow village manor house lodge abbey monastery
        priory arena dome gardens garden lighthouse dock docks pier marina terminal tunnel canal dam reservoir cemetery memorial
        monument plaza mall boulevard lane drive parkway freeway interstate quarter hills fields farms farm mills acres corners
        oblast governorate voivodeship empire caliphate sultanate emirate colony confederation metropolis hemisphere""",
    "natural object": """
        sound strait reef cove head point ridge forest woods canyon plateau lagoon bluff shoal fjord firth loch isle isles
        falls waterfall crater nebula glen cliffs basin delta rapids swamp marsh prairie savanna steppe rainforest""",
    "event": """
        accord accords agreement pact armistice coup strike raid invasion offensive derby gala fair parade protests incident
        disaster famine epidemic pandemic assassination trial trials ceremony awards convention games bowl""",
    "concept": """
        act acts amendment constitution charter statute bill clause doctrine rights code tax medal order style dance movement
        language languages dialect calendar alphabet script music""",
    "content": """
        times journal post chronicle suite concerto sonata overture cantata requiem mass ballad ep lp saga chronicles tales
        adventures story stories diary letters notebook handbook dictionary encyclopedia bible testament gospel trilogy sketch""",
    "creature": "eagle shark whale snake monster lizard bear wolf tiger lion beetle moth orchid fern oak",
})  # fmt: skip
# After a given name these are family names.
FAMILY = AMBIGUOUS_HEADS | frozenset("""
head point woods forest glen heights beach springs grove garden gardens brothers mills fields farms post mass story strike
bill order guard sketch eagle wolf lion fern oak marsh basin lane drive canyon ridge cove reef manor abbey lodge coast farm fair
parade trial code tax medal dance style script bluff isle tunnel dock pier mall
""".split())  # fmt: skip
FIRST = FIRST_TYPE | _kinds({
    "person": """
        captain judge justice commissioner sheriff lieutenant count countess duke duchess baron baroness sultan shah tsar
        czar empress archbishop cardinal bishop rabbi imam sister father uncle aunt admiral marshal commander corporal""",
    "location": "north south east west northern southern eastern western upper lower san santa los las isle fort port",
    "artifact": "hms uss rms ss",
    "event": "operation hurricane cyclone typhoon",
    "concept": "article proposition",
    "natural object": "gulf strait sea bay",
})  # fmt: skip
ENDINGS = (
    ("ville", "location"), ("burgh", "location"), ("shire", "location"), ("stan", "location"), ("grad", "location"),
    ("polis", "location"), ("borough", "location"), ("abad", "location"), ("istan", "location"), ("ology", "concept"),
    ("ianity", "concept"), ("osophy", "concept"), ("ism", "concept"),
)  # fmt: skip
GIVEN_NAMES = GIVEN | frozenset("""
abigail ada adele adrian agatha aidan aldous alec alejandro alexandra alexandre alexei alexis alison alistair alvin amelia anders
andreas angelo anita annie anton antoine april arjun arturo ashley astrid audrey august augustus axel bart beatrice beau benedict
benny bernardo bertha bertrand bjorn blake blanche boris brad brent brett bridget bruno byron callum camille cameron cary casey
cecil cecilia cedric celia cesar chad charlene chester chloe christoph christophe clarence clark claudia claus clayton clement
clifford clint clive clyde colleen connie conrad constance cora corey cornelius courtney curtis cyril daisy damian damon daniela
danielle daphne darren darryl daryl deanna debbie dennis derek desmond dexter diego dieter dominic dominique doreen douglas doug
drew dylan eamon earl edna edmond eileen elaine eleanora eli elias elijah elisabeth elliot elliott elmer elsa elton emil emile
emilio emmanuel enzo erica erika ernesto ernst erwin esther ethan ethel etienne eunice ewan ezra fabio faith fatima federico
felicity fernand fiona flora floyd forrest frances franck frankie frans freddie frieda gareth gavin geoff georg georges georgia
geraldine gerard gertrude gilbert gina giorgio giulia gladys glen gloria godfrey graeme greta guido guillermo gunther gustav
gwen hank harriet hassan hazel hector heidi helena helga henrietta henrik herbie hilda hiroshi holly homer horace hubert humphrey
hussein ibrahim ines ingrid ira irene iris irma irving isabella isabelle ivor jacek jacqueline jaime jared jasmine javier jeanne
jeannette jenna jenny jens jeremiah jess jessie jesus joachim joanna joanne jodie joey johan jonas jonny josef josephine joyce juana
juanita jules julio julius june justin kai kamala karim karin karl karol kathryn kathy katrina kay kelvin kendall kenji kerry
khalid kiran kirk klaus klara kristen kristin kurt lana lance lars laurent laurie leah leigh lena lenny leonid leopold leroy leslie
lila lilian lillian lily lionel lloyd logan lois lola lorenzo loretta lorraine lou luc lucia luciano lucille luigi lukas luther lydia
lyndon mabel mack maggie magnus malcolm mandy marcela marcelo marcia margot marian marianne marilyn marina marion marit marjorie
marlene marshall mateo mathew mathias mathilde matilda matteo matthias maureen maurizio mavis maxine maxwell may melanie melinda
melvin mercedes meredith mia mickey mildred milton minnie miranda mitchell mohamad mohamed moira molly mona monica montgomery moses
muriel myra nadia nadine natasha nathaniel ned nelly nicola nicky niels nikita nikola nils nora noel norma octavio odette olaf olaf
oleg olga omar ophelia orlando orson orville osama oswald otis owen paige paolo pascal pat patsy patti paulo pavel pearl peggy
penelope perry petra phoebe phyllis pieter piotr preston priscilla quentin quincy rafael rajiv ralph ramon randall randolph randy raul
ravi reggie regina reginald reinhard renee rhoda richmond rita roald rob robbie roberta rocco rodney rodrigo roderick rohan roland
romeo ronnie rory rosalind rosemary rudolph rufus rupert russ rusty sabrina sadie salvador salvatore sanjay santiago sasha saul selma
serena serge sergio seth shane shannon shaun shawn sheila sheldon shelley sherman sid sidney silvia silvio simone solomon sonia sophie
spencer stacy stan stella stewart sue sunil suresh suzanna sven tadeusz tamara tania tanya tara ted terence tess thelma theo thor tia
tobias tomas toni travis tricia tristan troy ulrike umberto uma una uri valentina valerie vanessa vasily veronica vicky vijay viktor
vince viola viktoria vivian vladimir walker wallis wanda ward wendell wilbur wilfred wilfrid wilma winifred wyatt xavier yasmin
yasser yolanda yves yvette yvonne zachary zoe
""".split())  # fmt: skip
KNOWN = dict.fromkeys(PLACES, "location") | _kinds({
    "location": """
        us usa uk uae ussr eu_countries aberdeen accra adelaide aleppo alexandria algiers ankara antwerp asunción atlanta auckland
        augusta austin baltimore bangalore bangkok basel beirut belfast belgrade bergen bern bogotá bologna bombay bonn bordeaux
        bradford bratislava bremen brisbane bristol bucharest buffalo burgundy calcutta calgary cambridge canberra canterbury
        cardiff caribbean chennai cincinnati cleveland cologne columbus constantinople cornwall coventry crimea dakar damascus
        devon dhaka dresden dubai dubrovnik durham düsseldorf edmonton essex fiji frankfurt gdańsk geneva genoa ghent gibraltar
        granada guangzhou guinea halifax hanoi hanover harlem havana hiroshima hollywood indianapolis islamabad johannesburg
        kabul karachi kathmandu kent kiev kraków kyoto lahore lancashire leeds leicester leipzig levant lima lisbon lombardy
        louisville lyon macedonia marseille mecca medina memphis mesopotamia miami milwaukee minneapolis monaco montenegro
        montevideo montgomery nagasaki nanjing newcastle nice nottingham nuremberg odessa omaha osaka ottawa oxford palestine
        patagonia pittsburgh plymouth portland pretoria prussia punjab quito raleigh reykjavík rhodesia richmond riga rotterdam
        saigon salzburg santiago sarajevo sardinia saxony seville seoul sheffield sialkot sicily sofia southampton strasbourg
        stuttgart surrey sussex tallinn tasmania tbilisi transylvania tripoli turin tuscany tyrol ulster valencia vatican verona
        vilnius winnipeg yorkshire zagreb zürich zurich yukon saskatchewan newfoundland queensland midlands new_england cape_town
        hong_kong kuala_lumpur ho_chi_minh_city abu_dhabi tel_aviv salt_lake_city kansas_city saint_petersburg holy_roman_empire
        british_isles papua_new_guinea northern_ireland ivory_coast nova_scotia british_columbia new_south_wales prince_edward_island
        west_indies east_germany west_germany midwest new_brunswick""",
    "organization": """
        netflix nbc cbs abc bbc cnn espn hbo mtv pbs itv nasa fbi cia nato eu un unesco unicef opec wto imf fifa uefa nba nfl nhl
        mlb ncaa nasdaq google microsoft facebook ibm intel sony nintendo toyota honda boeing airbus siemens samsung nokia
        motorola disney pixar paramount universal viacom comcast verizon youtube twitter reuters congress parliament wehrmacht
        kuomintang gestapo luftwaffe hezbollah hamas taliban interpol greenpeace united_nations european_union red_cross
        red_army supreme_court world_bank knesset bundestag duma riaa mit ucla""",
    "event": "christmas easter thanksgiving halloween ramadan hanukkah diwali holocaust renaissance olympics reconstruction",
    "concept": "islam christianity judaism buddhism hinduism english french german spanish latin greek hebrew arabic mandarin sanskrit",
})  # fmt: skip
for _word in ("french", "german", "spanish", "greek", "english", "arabic", "hebrew", "latin"):
    KNOWN.pop(_word)  # as often the people as the language

# Words beside a name: (the word before, the word before that), the word after.
OF_PLACE = frozenset("""
north south east west northeast northwest southeast southwest northern southern eastern western city town village suburb outskirts
mayor capital streets port coast borough municipality district parish province centre center people
""".split())  # fmt: skip
OF_PERSON = frozenset(
    "son daughter wife husband mother father brother sister death birth widow biography grandson nephew".split()
)
IN_PLACE = frozenset("""
born based located situated headquartered lived lives living died raised resides residing stationed held up arrived settled buried
place residence resided house home embassy university school campus office offices station hotel church museum day elections
""".split())  # fmt: skip
TO_PLACE = frozenset(
    "moved returned travelled traveled went relocated emigrated immigrated fled sailed flew migrated exiled".split()
)
BY_PERSON = frozenset(
    "directed written composed sung portrayed painted performed narrated voiced authored played sculpted".split()
)
BY_BODY = frozenset(
    "released published distributed owned operated acquired broadcast manufactured aired funded sponsored".split()
)
ON_BODY = frozenset("aired premiered broadcast airs airing televised".split())
AT_BODY = frozenset(
    "worked studied professor taught student researcher educated enrolled lecturer fellow studying works".split()
)
SAYS_PERSON = frozenset("""
wrote told asked replied recalled argued explained married died resigned retired believed thought felt remembered sang starred
graduated studied himself herself
""".split())  # fmt: skip
WAS_CONTENT = frozenset("released premiered published filmed recorded aired composed".split())
IS_PLACE = frozenset("located situated bordered bounded".split())
THE_NO_BODY = frozenset(
    "dvd cd lp lps dna rna gdp hiv tv pc dj mp ceo cpu gpu vhs ph ufo atm gps suv abs qb b.c a.d".split()
)
# Given names that are as often a place, a month or something else.
EITHER = frozenset("""
georgia florence victoria virginia jordan israel austin charlotte sydney chad june april may august faith grace holly jesus
madison lincoln logan richmond preston milton clayton clinton melbourne paris chester lancaster alexandria montgomery marshall
houston dallas orlando brad lance ward holly rusty rob dawn june summer pearl dean earl king duke art gene glen grant guy iris jade
miles rich ray sierra stone sunny sunday taylor walker wells will mark mercedes regina salvador santiago sofia una uma lima milan
ford pat rose ruby skip angel cruz
""".split())  # fmt: skip
NEVER = DEMONYMS | MONTHS
