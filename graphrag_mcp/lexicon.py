"""Word lists of the keyless extractor: plain data, no code beyond splitting strings.

Takes nothing, gives frozen sets and small maps; knows nothing of texts, spans or mentions. Every list is a
hint, never a gate alone: a word that is missing here costs one doubtful name, not a wrong rule.
"""

from __future__ import annotations

from graphrag_mcp.stems import LANGUAGES as LANGUAGES

# fmt: off
# Never the first word of a name when they open a sentence, and never a name of their own.
STARTERS = frozenset("""
a about above according across additionally after again against all almost along also although always am among an and
another any apart are aren't around as aside at away based because been before being below beneath beside besides
between beyond born both but by can can't cannot consequently could currently depending describe described despite did
didn't do does doesn't don't down due during each early either eventually except explain finally first following for
formerly former from furthermore generally get give given had has have having he he's hello help hence her here hers
herself hi him himself his how however i i'd i'll i'm i've if in including initially inside instead into is isn't it
it'd it'll it's its itself just last later latter least let let's like likewise list located made many may maybe me
meanwhile might mine more moreover most mostly much must my name near nearly neither never nevertheless no nobody none
nor not nothing notably now of off often ok okay on once one only onto or originally other others otherwise our ours
out outside over overall per perhaps please previously prior produced rather recently regarding released respectively
second secondly several shall she she's should show similarly since so some someone something sometimes soon still
subsequently such tell than thank thanks that that's the their theirs them themselves then there there's thereafter
therefore these they they're third this those though through throughout thus to today together too toward towards
traditionally typically ultimately under unlike until unto up upon us use used using usually various very via was we
we'd we'll we're we've well were what what's whatever when whenever where where's whereas wherever whether which while
who who's whoever whom whose why will with within without won't would written yes yet you you'd you'll you're you've
your yours two three four five six seven eight nine ten eleven twelve dear yesterday sorry ah oh hey ask write make find click
see note figure table chapter section page part step example
""".split())

MONTHS = frozenset("""january february march april may june july august september october november december jan feb mar
apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday januar februar märz mai
juni juli oktober dezember janvier février mars avril juin juillet août septembre octobre novembre décembre enero
febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre""".split())

# Adjectives of origin: useful links, but weak ones.
DEMONYMS = frozenset("""
african american americans arab arabic argentine armenian asian australian austrian azerbaijani bavarian belgian
bengali brazilian british bulgarian byzantine canadian catalan chilean chinese christian christians colombian croatian
cuban czech danish dutch egyptian english estonian ethiopian european filipino finnish french german germanic germans
greek greeks hebrew hindi hungarian icelandic indian indians indonesian iranian iraqi irish islamic israeli italian
italians jamaican japanese jewish jews jordanian kenyan korean latin latvian lebanese lithuanian malay malaysian
mexican mongolian moroccan muslim muslims nepali nigerian norwegian ottoman pakistani palestinian persian peruvian
polish portuguese romanian roman romans russian russians scottish serbian slavic slovak slovenian somali soviet spanish
swedish swiss syrian taiwanese tamil thai tibetan turkish ukrainian urdu venezuelan vietnamese welsh catholic
protestant buddhist hindu republican republicans democrat democrats democratic
""".split())

# Courtesy and office titles that are no part of the name that follows.
TITLES = frozenset("""
mr mrs ms miss mx dr prof professor president senator sen rep gov governor congressman congresswoman chancellor
ambassador sir dame madam lt col sgt capt cpl gen herr frau monsieur madame señor señora don doña господин госпожа
doctor detective inspector
""".split())
# "Head of X": the office goes, X stays.
OFFICES = frozenset("""
president director minister chairman chairwoman chair chief ceo governor mayor professor dean head secretary member
bishop archbishop ambassador chancellor speaker commissioner founder editor
""".split())
# Heads after which "for" or "and" stays inside the name: Department of Biochemistry and Biophysics.
BODIES = frozenset("""
academy agency alliance association award awards board bureau campaign center centre coalition college commission
committee conference council department faculty foundation fund institute institution journal ministry movement museum
network office organisation organization party prize programme program school secretary society union federation
convention treaty act bank division section laboratory museums
""".split())
EVENT_HEADS = frozenset("""
cup olympics games championship championships season election elections census tour open draft awards prix war battle
siege revolution festival conference summit treaty olympiad bowl finals final series marathon massacre uprising
rebellion riots earthquake hurricane crisis congress referendum attacks bombing campaign expedition weltkrieg krieg
schlacht guerre bataille guerra batalla
""".split())

# The last word of a name (or a noun of "X is a ...") and the type it speaks for.
_HEADS = {
    "organization": """
        university college institute institution academy school corporation corp inc ltd llc llp plc gmbh ag
        company co group association society foundation council committee commission agency department ministry
        bank party union league club team orchestra band records airlines airways motors press publisher senate
        parliament congress court army navy police church hospital network studios pictures entertainment
        federation alliance brigade division regiment organization organisation board bureau office authority
        fund trust laboratory museum gallery library newspaper magazine airline label manufacturer startup
        universität verein gesellschaft partei verlag société université entreprise universidad empresa partido
        compañía università университет компания институт партия""",
    "location": """
        city town village county province state district region country republic kingdom island islands street
        road avenue square park bridge airport station stadium castle palace tower building hall cathedral
        temple municipality suburb neighborhood neighbourhood borough capital territory township hamlet commune
        parish port harbor harbour prefecture highway railway stadt dorf ville pays région ciudad país provincia
        città город деревня страна область район""",
    "natural object": """
        river lake mountain mount mountains sea ocean bay gulf desert valley volcano glacier peninsula creek
        planet star asteroid comet galaxy moon mineral fluss rivière montagne río lago montaña река
        озеро гора""",
    "person": """
        actor actress singer songwriter politician footballer player writer author novelist poet painter
        composer musician physicist chemist mathematician scientist engineer lawyer journalist director producer
        businessman king queen emperor prince princess pope saint general philosopher economist historian
        biologist astronomer rapper guitarist drummer pianist comedian architect coach cricketer artist explorer
        entrepreneur programmer professor bishop wrestler boxer model activist filmmaker screenwriter
        illustrator schriftsteller politiker schauspieler physiker écrivain acteur actrice chanteur écrivaine
        peintre escritor político pintor cantante scrittore pittore писатель поэт учёный физик актёр политик
        художник""",
    "content": """
        film movie album song single novel book series episode show play opera symphony poem painting
        documentary sitcom musical soundtrack anthem hymn manga comic trilogy roman buch livre libro película
        canción фильм роман книга песня альбом""",
    "event": """
        cup olympics games championship championships election war battle siege revolution festival conference
        summit tournament census massacre uprising rebellion earthquake hurricane referendum krieg schlacht
        weltkrieg guerre bataille guerra batalla война битва""",
    "artifact": """
        software language library framework console smartphone phone computer aircraft ship rocket missile
        satellite spacecraft locomotive car engine weapon tank rifle game browser database app tool product""",
    "concept": """
        theory theorem law principle syndrome disease disorder effect religion philosophy doctrine ideology
        concept paradox hypothesis theorie théorie teoría teoria genre теория закон""",
    "method": "algorithm method technique therapy protocol procedure treatment process model",
    "creature": "species genus dog cat horse bird fish demon deity god goddess dinosaur breed dragon insect",
    "data": "dataset corpus benchmark census database",
}
HEAD_TYPE: dict[str, str] = {}
for _type, _words in _HEADS.items():
    for _word in _words.split():
        HEAD_TYPE.setdefault(_word, _type)
# First words that speak for a type: Mount Everest, Lake Geneva, King George V.
FIRST_TYPE = {
    "mount": "natural object", "lake": "natural object", "river": "natural object", "cape": "natural object",
    "king": "person", "queen": "person", "prince": "person", "princess": "person", "pope": "person",
    "emperor": "person", "saint": "person", "lord": "person", "lady": "person", "fort": "location", "port": "location",
    "university": "organization", "ministry": "organization", "department": "organization", "bank": "organization",
    "institute": "organization", "battle": "event", "siege": "event", "treaty": "event", "republic": "location",
    "kingdom": "location", "universität": "organization", "université": "organization", "universidad": "organization",
}

# Heads that make a lower-case noun phrase worth noting at its first appearance.
PHRASE_HEADS = frozenset("""
algorithm analysis acid cell cells syndrome disease disorder theory theorem method model system systems protocol
language learning network networks database engine therapy law act effect energy physics mathematics chemistry biology
engineering science software hardware architecture policy market tax asset assets rate index function equation
principle gene genes protein proteins genome bacteria virus vaccine war party league instrument instruments dynasty
religion philosophy literature music design technology intelligence retrieval framework council committee federation
station railway highway journal award prize festival game
""".split())

FILE_ENDINGS = frozenset("""
py js ts tsx jsx md txt json jsonl yaml yml toml csv tsv html htm css xml pdf docx xlsx pptx png jpg jpeg gif svg sh
bash c h cpp hpp cc rs go java kt swift rb php sql ipynb lock cfg ini env log parquet net org com io dev ai edu gov app
so dll exe zip gz tar
""".split())
# Capitals that are no names by themselves: roman numerals, clock and calendar marks, answers.
ACRONYM_NOISE = frozenset("""
II III IV VI VII VIII IX XI XII XIII XIV XV XVI XX AM PM A.M. P.M. AD BC BCE CE OK NO YES ID VS NB PS ET EST PST GMT
UTC Q Q1 Q2 Q3 Q4 TODO FIXME NOTE PMID DOI ISBN ISSN I.E E.G I.E. E.G.
""".split())
# Suffixes that a name gets glued to: London-based.
TAILS = frozenset("""
based born style like led owned language speaking era type winning only related backed made wide themed trained
nominated centered century year area class level dominated occupied controlled
""".split())
# Heads that are as often a family name: Hall, Lake, King. They give no type after a given name.
AMBIGUOUS_HEADS = frozenset("""
hall church lake king rock park bay castle law bird fish moon star page cook street rivers press show band board wolf
dog cat co see ag group model process car engine play song books bishop court banks palace bridge fields house stone
wood woods hill hills marathon price prince general town major berg tank rifle bear horse tower square day single prix
series draft open tour season book final games union party trust office
""".split())
# Adjectives and nouns too general to open a noun phrase or to be tried alone.
DULL = frozenset("""
new other many first last same several different such own large small major main early late good best great high higher
low lower long short old young next previous various certain particular general special common important similar
possible total full current recent local public private whole entire real true free available able more less most least
number part way kind type side end year years month months day days time times thing things people person one two three
four five six seven eight nine ten million billion percent based including known called named became become made make
making used using use uses located founded born died held began begin created built written released published produced
directed won win played play plays playing served serve moved chapter figure table section page step example item list
question answer name names word words which whose mean means describe explain happened happen start started ended did
does much often also ever currently originally
""".split())
GIVEN = frozenset("""
aaron adam adolf agnes alan albert alex alexander alfred ali alice allen amanda amy ana andre andrea andrew andy angela
ann anna anne anthony antonio archie arnold arthur barack barbara barry ben benjamin bernard bernie beth betty bill
billy bob bobby boris brad brandon brenda brian bruce bryan carl carlos carol caroline catherine charles charlie
charlotte chris christian christina christine christopher claire clara claude colin craig cynthia dale dan daniel danny
dave david dean deborah denis dennis diana diane dick dmitri don donald donna doris dorothy douglas duncan dustin
dwight ed eddie edgar edith edmund eduard edward edwin eleanor elena elizabeth ella ellen emily emma enrique eric erik
ernest eugene eva evan evelyn felix fernando florence francesco francis francisco frank franklin franz fred frederick
friedrich gabriel gary gene geoffrey george gerald gerard giovanni giuseppe glenn gordon grace graham greg gregory
gustav guy hannah hans harold harriet harrison harry harvey heather heinrich helen henri henry herbert herman hillary
howard hugh hugo ian ida igor isaac isabel ivan jack jackie jacob jacques jake james jamie jan jane janet jason jay
jean jeff jeffrey jennifer jeremy jerome jerry jesse jessica jill jim jimmy joan joe joel johann johannes john johnny
jon jonathan jordan jorge jose josé joseph josh joshua joyce juan juliette judith judy julia julian julie jürgen karen
karl kate katherine kathleen katie keith kelly ken kenneth kevin kim kurt kyle larry laura lauren laurence lawrence lee
leo leon leonard leonardo leslie lester lewis liam linda lisa louis louise lucas lucy ludwig luis luke lynn madison
manuel marc marcel marco marcus margaret maria marie marilyn mario mark marlon martha martin marvin mary matt matthew
maurice max megan mel melissa michael michel michelle miguel mike mikhail mohamed mohammed morgan muhammad nancy naomi
natalie nathan neil nelson nicholas nick nicolas nicole nigel nikolai nina noah norman olga oliver olivia oscar otto
pablo pamela patricia patrick paul paula pauline pedro percy peter phil philip philippe phillip pierre rachel ralph ray
raymond rebecca rene ricardo richard rick robert roberto robin roger roland ron ronald rosa rose ross roy rudolf
russell ruth ryan sally sam samantha samuel sandra sara sarah scott sean sebastian sergei sharon shirley sigmund simon
sophia sophie stanley stefan stella stephanie stephen steve steven stuart susan suzanne sylvia taylor ted teresa terry
theodore theresa thomas tim timothy tina todd tom tommy tony tracy trevor tyler ulrich ursula vera victor victoria
vincent virginia vladimir wallace walt walter warren wayne wendy werner wilhelm will william willie winston wolfgang
yuri zachary владимир александр иван николай михаил сергей алексей андрей дмитрий пётр анна мария елена
""".split())
# Countries, continents and the largest cities: places without a telling head.
PLACES = frozenset("""
africa america asia europe antarctica oceania afghanistan albania algeria angola argentina armenia australia austria
azerbaijan bahrain bangladesh belarus belgium bolivia bosnia botswana brazil britain bulgaria burma cambodia cameroon
canada chile china colombia croatia cuba cyprus czechoslovakia denmark ecuador egypt england estonia ethiopia finland
france germany ghana greece guatemala haiti honduras hungary iceland india indonesia iran iraq ireland israel italy
jamaica japan kazakhstan kenya korea kuwait laos latvia lebanon libya lithuania luxembourg madagascar malaysia mali
malta mexico moldova mongolia morocco mozambique myanmar namibia nepal netherlands nicaragua nigeria norway oman
pakistan panama paraguay peru philippines poland portugal qatar romania russia rwanda scotland senegal serbia singapore
slovakia slovenia somalia spain sudan sweden switzerland syria taiwan tanzania thailand tibet tunisia turkey uganda
ukraine uruguay uzbekistan venezuela vietnam wales yemen yugoslavia zambia zimbabwe alabama alaska arizona arkansas
california colorado connecticut delaware florida hawaii idaho illinois indiana iowa kansas kentucky louisiana maine
maryland massachusetts michigan minnesota mississippi missouri montana nebraska nevada ohio oklahoma oregon
pennsylvania tennessee texas utah vermont wisconsin wyoming ontario quebec alberta manitoba london paris berlin madrid
rome moscow vienna tokyo beijing shanghai delhi mumbai kolkata chicago boston houston dallas seattle philadelphia
detroit toronto montreal vancouver sydney melbourne dublin edinburgh glasgow manchester liverpool birmingham munich
hamburg barcelona milan venice florence naples athens istanbul jerusalem cairo baghdad tehran lagos nairobi amsterdam
brussels copenhagen stockholm oslo helsinki warsaw prague budapest bavaria siberia manhattan brooklyn catalonia
normandy scandinavia deutschland frankreich österreich europa españa italia россия москва украина германия франция
китай сша hong_kong new_york new_zealand new_jersey new_mexico new_orleans new_york_city north_america south_america
south_africa north_korea south_korea north_carolina south_carolina north_dakota south_dakota west_virginia rhode_island
new_hampshire los_angeles san_francisco san_diego las_vegas washington_d.c united_states united_kingdom great_britain
soviet_union sri_lanka saudi_arabia costa_rica puerto_rico el_salvador czech_republic middle_east western_europe
eastern_europe new_delhi buenos_aires são_paulo rio_de_janeiro st_petersburg
""".split())
# English words that are seldom names: a single capitalised one at the start of a sentence is not taken for a name.
COMMON = frozenset("""
abandoned abbreviated ability able about above absence absent academic accepted access accident accompanying accordance
according account accumulated accurate achieve achievement acquire acquisition across acted acting action active
activities activity acts actual adaptation adapted add addition additional address adjusted adjustments administration
administrative adopt adoption adult advance advantage advisory affect affiliated after again against age agency agent
ago agree agreement agriculture aid aimed air aircraft airports album all alliance allies allocated allow almost alone
along alongside already also alternative although always amateur among amongst amount analysis ancient and animal
animated announced annual another anti any appeal appear appearance application applied apply appointed approach
appropriate approval approximately architect architectural architecture are area armed arms around arranged arrived art
article artifacts artist asked aspects assembled assess assets assigned assist assistance associate assumed assumes
astronomical atmosphere attached attack attempt attended attention author authorities authority authorized availability
available average aviation avoid awarded awards away back background bacteria balance bands bank banner bar base basic
basis bass battle bear beat became because become been before began begin beginning behalf behavior behind being belief
believe below beneficial benefit best better between beyond biggest bill binding biological bit black block blood board
body bond bonus book border born both bottom bought bound boundaries boundary box brain branch brand break bridges
brief bring broad broke broken bronze brothers brought budget build built business but buy calculated calculation
calendar call came campaign can cancer candidate cannot cap capacity capital capture car carbon care carried carrier
carry case cash cast categories category cause ceased cell cellular centers central centre centuries century certain
certainty certified chain chairman challenge chance change channel character characteristic characterized charge chart
chief child children chip choice choose chose chosen circuit circumstances cities citizen city civil civilian claim
class classic classification classified clean clear climate clock close closure club coach coast code cold
collaboration collected collection collectively color column combat combination combined come comedy comic command
commenced comments commercial commissioned commitment committed common communication communities community comp
companies company comparable comparative compared comparison compete competition competitive complete completion
complex component composed composer composition comprehensive comprised comprises comprising computer concentration
concept concerns concert concluded conclusion condition conduct confirmed conflict conjunction connected connection
connects consecutive consensus consequence conservation conservative consider consisted consistent consisting consists
consolidated constant constitute construct construction consumer consumption contact contain content contest context
continent continental continually continue continuous contract contrast contribute contribution contributor control
controlled controlling controversial conventional converted cook cooperation copies copy core corn corporate
corporation corresponding cost could counties countries country couple course cover coverage create creation credit
crime criminal crisis criteria critic critical crop cross crucial cultivate culture cumulative current curve customers
cut cycle daily damage dark data date daughter day dead deadliest deal death debt debut decade decide decision declared
decline decrease dedicated deep default defeated defeating defend defense defensive define definition degradation
degree delay deliver delivery demand demo democracy demonstrated demonstrating denied departments dependent depending
derivative derived describe description design designated despite destination destroyed destruction detail detection
determine develop development devices devoted did died difference different difficult difficulty digital direct
direction director disc discontinued discover discussed discussion disease displayed distance distinct distinguish
distribute distribution district diversity divided division documents does doing dollars domestic done door double down
downtown draft draw drawn driven driver driving dropped drove drug due duration during duties each earlier earliest
early earn easily east eastern easy economic economy edited edition editor education educator effect effective
efficiency efficient effort eight eighth either elect election electoral electric electrical electricity element
eligible eliminated emissions employed employee employment enable encompasses end energy enforcement engage engine
engineering enhance enjoyed enough ensure enter enterprise entire entities entitled entry environment environmental
episodes equal equipment equipped equivalent erected error especially essential establish establishment estate estimate
evaluated even event eventually ever every everyone everything evidence evolved examination examined example exceed
excellent except exception excess exchange excluded excludes excluding exclusive executed executive exercise exhibits
exist existence expanded expanding expansion expectation expected expense expensive experience experimental expert
explain explore exported exposed exposure expressed extend extension extensive extent external extreme eyes face
facilities facility fact factor failed failure fair faith fall false families family famous fans fantasy far fashion
fast fate father favorable feature federal fees feet fell fellow felt female few field fifteen fifth fifty fight file
filming films final finance financial find finish fire firm first fiscal five fixed flat floor flow focus follow food
foot football for force foreign form formal format formation forward found four fourth fraction franchise free freedom
frequency frequent friend from front full fully fun function functional further future gain gallery game gap gas gave
gene general generate generation geographic geographical get getting girl give given glass global goal goes going good
got governing government governmental grade gradually grand granted grants greater greatest greatly green grew gross
ground group growing grown growth guide guitar gun had half hand handled happened hard has have head headquartered
headquarters health healthy heard heart heat heavily heavy height held help hence her here herself high highest him
himself hip hired his historical history hit hockey hold home honor horror host hour housed housing how however hub
human husband hypothesis ice idea identification identified identify identity illegal illustrated image immediate
impact implemented implications importance important imported impossible impressive improve improvement inactive
inception include inclusion income incorporated incorporates increase independence independent index indicated
indicates indicating indigenous indirectly individual industrial industries industry influence influential information
infrastructure inherited initial initiated initiatives injured injury innovative inputs inside inspiration inspired
installed instead institution instrument insurance integrated integration intended intensity interaction interest
interim interior internal international interpretation intersection interview into introduced introduction invaded
invasion invested investigation investing investment invited involve isolation issue item its itself job join joint
journalist just keep kept key killed killing kinase kind know knowledge known label labor laboratories laboratory lack
land language large largest last late latter launch law lawyer lead leadership learn least leave led left legal
legislature length less let letter level library licensed licenses lies life light like likelihood limit limitations
line linking links list lit literally literature live loan local located location long look losing loss lost low lowest
lyrics made magazine main mainland maintain maintenance major majority make male man manage management manner
manufacture manuscript many map margin maritime marked market marks married mass master match material matter maximum
may mean measure measurement mechanism media medium meet member membership memory men merchant merged merger met metal
method might miles military million minimal minimum minor minority missed missing mission mix mobile mode model modern
modifications modified molecular monetary money month more morning most mother motion mouth move movement movies much
multi multiple municipal murder music musical must name narrow nation nationally native natural naval near nearby
nearest necessary need negative negotiations neighborhood neighboring net network never newly next night nine ninth non
none nor normal northeast northern northwest not notable note novel now nuclear number numerous objective objects
obligation observation observatory observed obtain occupied occur occurred occurrence occurring off office official
often oil old oldest once one ongoing online only onto open opera operate operation operational opportunities
opportunity opposed opposite opposition option orchestra order ordinary organization organized origin original
originated other otherwise our out outcomes output outside over overall overseas overview owing own ownership page paid
painting pair panel paper par parallel parent parish part partial participants participate particular parties partner
partnership pass passage passengers past path pattern pay peace peak peer penalties people per percent percentage
perform performance perhaps period periodic permanent permitted person personal personnel phase phenomenon philosophy
physical physics pick piece pilot place plan planned planning plant platform play plot plus poetry point police
policies policy political politics pollution pool popular popularity population port portfolio portion position
positive possibility possible possibly post potential poverty power powerful practical practice praised preceding
precise predecessor predicted predominantly preferred preparation prepared presence present presidential pressure
presumably prevent previous price primarily primary principal principle prior priority prison private prize pro
probably problem process produce producers product production professional professor profile profit program programme
progress progressive project prominent promote properly properties property proposal propose protect protection protest
proved provide provision proximity public publication published publishes publishing purchase purpose pursue put
qualified qualify quality quantity quarter question quickly quoted railroad raised ran range rank rapid rare rate
rather ratio raw reach reaction read ready real realistic reality reason reasonable receive recent reception recognised
recognition recognize record recovered recovery recurring reduce reduction refer reference referred refinance refined
reflect reform regarded regarding region registered regular regulation regulatory rejected related relating relation
relationship relative release relevant relief religious relocated remain remainder remarkable remembered remote removed
renamed renewed reorganization repair repeated replace replacement report represent representation representative
request require requirements research reserve residential resistance resolution resolve resource respect respective
response responsibility responsible rest restoration restore restricted restrictions result retail retain retired
retirement return reveal review rhythm rifles right ring rise risk roads role romantic room roughly round routes row
rule run runner running rural safety said sale same satellite save saw say scale scene schedule schools scientific
scientists score screen script search season seat second secondary secret section secular secured security see seek
seem seen segment select selection self sell semi senior sense sensitive sent separate separation sequel sequences
series serious serve service session set setting settled settlement seven seventeen seventh several severe sex sexual
shape share she shift ship shore short shot should show shown siblings side signal signed significant signing silent
silver similar simple simply simulation since singer single sister site situation six sixth size ski slightly slow
small social software sold soldiers sole solution some something sometimes somewhat song songwriter soon sought source
southeastern southern space span speak special specialized species specific specifically spectrum speech speed spend
spent spirit split sponsor sport spread spring squad stability stable staff stage stained stand standard stars start
state statement station statistical statistics status statutory stay steam steel step still stock stood stop stopped
store stories storm story straight strain strategic strategies strategy strength strengthen strict striking strong
struck structure student studied studies studio study style sub subject submitted subsequent subsidiary substantial
suburban succeeded success successful such suffered sufficient suggest suitable sum summer supplies supply support sure
surface surrender surrounding sustainable symbol system table take taken talk target taught tax teacher teaching team
technical techniques technologies technology television tells temporarily temporary ten term terminal territory test
text than thank that the their them theme themselves then theoretical theory there thereafter therefore these they
things think third this those though thought thousand threat three through throughout thus tied tier time tip title
tobacco today together told tone too took tools top total tournament toward tower town track trade traditional traffic
trafficking train transfer transferred transition translated translation transmission transport transportation travel
treated treatment tree trend trial troops true trust try turn twelve twenty twice two type typical ultimate unable
under underground underlying understanding understood unincorporated unique unit universities unknown unless unlike
unprecedented unrestricted until unusual upon upper urban usage use useful users usually utility utilized vaccine value
variable variation varies variety various vary vast venue version versus very veteran via vicinity victory video view
violence virtually visit visual vital vocals volume von vote wall want warm was waste water way weak wealthy weapons
weather website week weight well went were what wheat when where whereas whether which while who whole wholly whom
whose why wide widespread wife wild will win window wine wings winner winning winter wish with within without woman
women won wooden word work worldwide worst worth would write written wrote year yet yield you young youngest youth zero
""".split())
