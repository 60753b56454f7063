"""Word lists for Arabic, Persian, Hebrew, Hindi and Thai, whose letters have no capitals: plain data.

Takes nothing, gives frozen sets and small maps, all folded as search terms are; knows nothing of texts. Every list is
a hint: a word that is missing here costs one doubtful name.

Word lists of the keyless extractor: plain data, no code beyond splitting strings.

Takes nothing, gives frozen sets and small maps; knows nothing of texts, spans or mentions. Every list is a
hint, never a gate alone: a word that is missing here costs one doubtful name, not a wrong rule.

Word lists for Japanese and Korean names: plain data, no code beyond splitting strings.

Takes nothing, gives frozen sets and small maps; knows nothing of texts. Every list is a hint: a word that is missing
here costs one doubtful name, not a wrong rule.

Word lists for names in languages that have capitals and are not English: plain data, and the folding of its keys.

Takes nothing, gives maps of folded words; knows nothing of texts. Words of Cyrillic and Greek stand without the endings
of their cases, so that one entry serves all of them. Every list is a hint, never a gate alone.

Word and character lists for Chinese: plain data, no code beyond splitting strings.

Takes nothing, gives frozen sets and small maps; knows nothing of texts. Every list is a hint, never a gate alone.

Word lists that tell what an English name is: plain data, no code beyond splitting strings.

Takes nothing, gives frozen sets and small maps; knows nothing of texts. They give types only: which words are a name at
all stands in lexicon.py. Every list is a hint.
"""

from __future__ import annotations

import re
from functools import lru_cache

from graphrag_mcp.text.folding import STOP_WORDS, folded, without_cases

# fmt: off
# Never the first word of a name when they open a sentence, and never a name of their own.
STARTERS = frozenset("""
a about above according across additionally after again against all almost along also although always am among an and
another any apart elsewhere are aren't around as aside at away based because been before being below beneath beside besides
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
see note figure table chapter section page part step example said says et al analysts researchers critics experts
aah aha alright amazing anyway awesome aww bye cheers congrats congratulations cool damn definitely exactly fantastic
gosh gotcha goodbye gonna gotta great ha haha hahaha hehe hmm hmmm hm huh hooray indeed lmao log lol nah nice nope omg ooh
oops ouch perfect phew plus sounds sure thx ugh uh uhm um umm welcome whoa woah wow yay yeah yep yikes yup absolutely
seriously honestly obviously sadly luckily hopefully big distinct identical
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
protestant buddhist hindu republican republicans democrat democrats democratic briton britons dane dutchman
englishman englishwoman finn frenchman frenchwoman irishman irishwoman pole scot scots scotsman spaniard spaniards
swede swedes turk turks welshman
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
# "Members of X": the group goes, X stays.
GROUPS = frozenset("""
citizens copies critics employees fans followers friends fragments half inhabitants leaders leader makers maker
members most owners owner owns parts people photographs pictures producers representatives residents shares
shareholders soldiers some students supporters sales thousands hundreds millions users veterans victims workers
""".split())
# Words before a person's name that are no part of it: Writer Tony Cowell, Captain Aldous Renwick.
ROLE_WORDS = frozenset("""
actor actress analyst artist author boss film-maker captain champion coach comedian conservative correspondent defender democrat
democrats drummer economist forward goalkeeper guitarist historian judge justice labour lawyer leader liberal manager
midfielder mp musician novelist number opener owner photographer playwright poet premier presenter producer rapper
referee reverend rival scientist sergeant sheriff singer skipper spokesman spokeswoman star striker superstar teammate
tories tory whip winger winner writer executive columnist host jockey olympian rookie runner sprinter swimmer trainer
veteran activist astronaut biologist chemist composer designer developer engineer filmmaker inventor journalist
magistrate mathematician missionary painter philosopher physicist pilot reporter sculptor surgeon teenager translator
american argentine australian austrian belgian brazilian briton canadian czech dane dutchman egyptian englishman
ethiopian finn frenchman german greek indian irishman israeli italian kenyan mexican moroccan norwegian pole russian
scot scotsman spaniard swede swiss thai turk ukrainian welshman
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
along alongside already also alternative although altogether anybody anyone always amateur among amongst amount analysis ancient and animal
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
evaluated even event eventually ever every everybody everyone everything evidence evolved examination examined example exceed
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
small social software sold soldiers sole solution some somebody someone something sometimes somewhat song songwriter soon sought source
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


def _kinds(rows: dict[str, str]) -> dict[str, str]:
    return {word: kind for kind, words in rows.items() for word in words.split()}


# ---- Japanese -----------------------------------------------------------------------------------
JA_HEADS = _kinds({
    "organization": """
        大学 大学院 高校 高等学校 中学校 小学校 学園 学院 株式会社 有限会社 会社 銀行 協会 学会 研究所 研究院 委員会 財団 組合 連盟 病院
        新聞 新聞社 出版 出版社 書店 放送 電機 電器 電鉄 鉄道 造船 自動車 製薬 製作所 工業 商事 建設 食品 化学 重工業 航空 博物館 美術館
        図書館 科学館 水族館 動物園 劇団 楽団 交響楽団 党 社 省 庁 裁判所 警察署 消防署 商会 百貨店 映画 証券 生命 大學""",
    "location": """
        都 道 府 県 市 区 町 村 郡 州 駅 島 諸島 半島 城 橋 大橋 寺 神社 神宮 大社 空港 港 公園 通り 国 共和国 王国 帝国 連邦 街道
        温泉 遺跡 トンネル ダム タワー 地方 合衆国 県庁 市役所 町役場 塔 宮""",
    "natural object": "川 山 岳 湖 沼 海 湾 峠 高原 平野 盆地 山脈 火山 滝 海峡 池 岬 渓谷",
    "event": "戦争 の戦い の乱 事件 事変 地震 大震災 祭 映画祭 音楽祭 オリンピック 選手権 大会 革命 条約 一揆 万博",
    "person": "氏 天皇 法師 親王 皇后 上人",
})  # fmt: skip
# After a person's name and no part of it.
JA_TITLES = sorted("""
氏 さん 様 くん 君 ちゃん 先生 教授 准教授 名誉教授 博士 社長 会長 市長 町長 村長 知事 首相 大統領 監督 選手 議員 大臣 容疑者 夫妻
投手 課長 部長 所長 館長 学長 校長 院長 記者 被告 弁護士 代表 元首相 元社長 大佐 将軍
""".split(), key=lambda word: (-len(word), word))  # fmt: skip
JA_ABSTRACT = frozenset("者値的性力法化率量部会員上中下前後間点面書用品")  # the last sign of no given name
JA_TITLES_KANA = tuple("さん さま ちゃん くん せんせい".split())
# Before a person's name, glued to it.
JA_ROLES = sorted("""
社長 会長 市長 知事 首相 監督 選手 教授 作家 俳優 女優 歌手 画家 詩人 小説家 漫画家 物理学者 化学者 数学者 科学者 天文学者 政治家
建築家 音楽家 作曲家 登山家 実業家 写真家 指揮者 創業者 創設者 代表 主演 主人公 長男 次男 長女 次女 夫人 代表取締役 取締役 技師
""".split(), key=lambda word: (-len(word), word))  # fmt: skip
JA_DULL = frozenset("""
港町 本社 支社 会社 新会社 大会社 子会社 親会社 市内 町内 村内 県内 都市 地方都市 大都市 城下町 下町 火山 活火山 登山 鉱山 外国 全国 各国 母国
帰国 両国 中国語 英国人 小島 離島 列島 本島 孤島 古城 神社 寺院 大学 大学院 高校 学校 小学校 中学校 銀行 病院 新聞 放送 鉄道 映画 食品 化学
建設 工業 自動車 公園 空港 温泉 戦争 世界大戦 事件 地震 革命 条約 大会 博物館 美術館 図書館 水道 報道 鉄道 書道 柔道 剣道 国道 県道 歩道
件名 日時 出席者 宛先 差出人 議題 最初 最後 最近 今朝 夕方 午前 午後
都道府県 市町村 市区町村 政党 与党 野党 入党 神社 商社 退社 入社 出版社 新聞社 各社 同社 同市 同県 同町 当社 反省 帰省 政府 官庁 県庁
上海 日本海 航海 公海 北海 貯水池 電池 河川 小川 山川 台風 前駅 各駅 終着駅 急行停車駅 住宅街 湖沼 公民館 公国 王国 帝国 共和国 連邦 半島
""".split())  # fmt: skip
JA_PLACES = frozenset("""
日本 東京 大阪 京都 北海道 青森 岩手 宮城 秋田 山形 福島 茨城 栃木 群馬 埼玉 千葉 神奈川 新潟 富山 石川 福井 山梨 長野 岐阜 静岡 愛知 三重
滋賀 兵庫 奈良 和歌山 鳥取 島根 岡山 広島 山口 徳島 香川 愛媛 高知 福岡 佐賀 長崎 熊本 大分 宮崎 鹿児島 沖縄 横浜 名古屋 札幌 神戸 仙台
川崎 北九州 中国 韓国 台湾 米国 英国 アメリカ イギリス フランス ドイツ イタリア スペイン ロシア インド スウェーデン ノルウェー フィンランド
デンマーク オランダ ベルギー スイス オーストリア カナダ ブラジル メキシコ オーストラリア ロンドン パリ ベルリン ニューヨーク モスクワ ローマ
ヨーロッパ アジア アフリカ 関東 関西 東北 九州 四国 本州
""".split())  # fmt: skip
JA_SURNAMES = frozenset("""
佐藤 鈴木 高橋 田中 渡辺 渡邊 渡部 伊藤 山本 中村 小林 加藤 吉田 山田 佐々木 山口 松本 井上 木村 林 清水 山崎 森 阿部 池田 橋本 山下 石川 中島
前田 藤田 後藤 小川 岡田 長谷川 村上 近藤 石井 斎藤 斉藤 齋藤 坂本 遠藤 青木 藤井 西村 福田 太田 三浦 藤原 松田 岡本 中川 中野 原田 小野
田村 竹内 金子 和田 中山 石田 上田 森田 原 柴田 酒井 工藤 横山 宮崎 宮本 内田 高木 安藤 谷口 大野 丸山 今井 高田 藤本 河野 小島 武田 村田
上野 杉山 増田 平野 菅原 久保 小山 松井 千葉 岩崎 木下 松尾 野口 桜井 野村 渡部 菊地 菊池 佐野 大塚 杉本 新井 古川 市川 浜田 小松 島田 水野
桑原 高野 山内 西田 西川 五十嵐 北村 安田 中田 川口 平田 川崎 飯田 本田 吉川 久保田 沢田 辻 関 吉村 渡 中西 岩田 服部 樋口 福島 川上 永井
松岡 田口 山中 森本 土屋 矢野 秋山 広瀬 大西 石原 大島 岡 松村 東 内藤 浅野 片山 熊谷 星野 大石 小池 荒井 伊東 尾崎 高山 宮下 高瀬 小野寺
海老原 大河原 黒田 黒沢 黒澤 宮沢 宮澤 宮川 北野 三島 川端 夏目 芥川 太宰 谷崎 樋口 正岡 与謝野 織田 豊臣 徳川 明智 伊達 上杉 真田 足利 源 平 北条
今川 浅井 石橋 吉野 大江 大谷 羽生 藤沢 東野 湯川 朝永 野依 山中 本庶 安倍 岸田 菅 小泉 細川 鳩山 麻生 石破 池上 森山 桐生 速水 結城 水谷 天野
有馬 飯島 石黒 稲葉 岩井 植田 大久保 大竹 小澤 小沢 梶原 片岡 川村 河合 神田 岸 北川 栗原 榊原 白石 須藤 関口 高島 竹田 谷 津田 土井 中尾 永田
成田 西山 野田 長谷 早川 平井 藤岡 堀 本間 松下 三宅 村山 望月 矢島 柳 山岸 横田 吉岡 米田 若林 豊田 松浦 福沢 福澤 渋沢 岩倉 西郷 坂上 大隈 板垣 木戸 勝 新渡戸 野口 北里 志賀 梶井 川上 島崎 森鴎 幸田 尾崎 泉 横光 堀口
井伏 司馬 遠藤 大岡 安部 開高 筒井 星 手塚 藤子 鳥山 宮部 京極 伊坂 湊 吉本 有吉 向田 黒柳 美空 石原 渥美 三船 黒澤 小津 溝口 北島 長嶋 王 松坂
鈴木 羽田 本橋 浅田 高梨 内村 錦織 大坂 久石 坂東 市村 尾上 中井 竹中 稲盛 盛田 井深 早坂 赤坂 日野 長野 広川 白川 黒川 青山 赤城
""".split())  # fmt: skip

# ---- Korean -------------------------------------------------------------------------------------
# Particles at the end of an eojeol, longest first.
JOSA = tuple(sorted("""
에서는 으로는 이라고 이라는 에게서 으로서 으로써 까지 부터 에서 에게 으로 라고 라는 이나 처럼 보다 마다 은 는 이 가 을 를 의 에 도 로 와 과 만
에는 에도 에서도 으로도 까지는 이며 이고 이자 께서 한테 이란 이었다 였다 이다 입니다 입니까 인가 이라 에서의 과의 와의 이나마 조차 에게는 으로부터
로부터 로서 로써 였으며 이었으며 이라면
""".split(), key=lambda word: (-len(word), word)))  # fmt: skip
KO_HEADS = _kinds({
    "organization": """
        대학교 대학 고등학교 중학교 초등학교 은행 전자 그룹 회사 주식회사 공사 협회 재단 박물관 도서관 미술관 과학관 수족관 병원 신문 일보 방송
        연구소 연구원 위원회 정당 중공업 자동차 제약 건설 출판사 항공 조선 교향악단 구단 재판소 법원 경찰서""",
    "location": """
        특별시 광역시 특별자치도 시 군 구 도 읍 면 리 동 역 공항 공원 다리 대교 사찰 궁 성당 시장 항 섬 제도 반도 공화국 왕국 제국 온천 터널 마을 로""",
    "natural object": "강 산 호수 호 산맥 해협 바다 폭포 계곡 고원 평야 화산 봉 천",
    "event": "전쟁 혁명 사건 전투 대회 올림픽 월드컵 축제 영화제 지진 조약 운동회 대전",
})  # fmt: skip
# What a word of three syllables and more ends in and yet is no name.
KO_DULL = frozenset("""
활동 운동 행동 노동 감동 이동 자동 공동 연구 요구 도구 친구 인구 입구 출구 제도 정도 속도 온도 태도 지도 시도 용도 강도 밀도 생산 재산 예산 계산
부산 자산 확산 해산 역시 다시 즉시 표시 전시 도시 동시 감시 잠시 건강 최강 보강 보호 번호 기호 신호 변호 구역 지역 번역 무역 영역 관리 처리 원리
거리 논리 심리 정리 자리 머리 소리 우리 요리 유리 국군 화면 방면 장면 측면 표면 반면 수면 화산 등산 하천 추천 실천 인천 봉 상황 궁 성당 온천 대학
대학교 회사 은행 병원 신문 방송 공원 공항 전쟁 혁명 사건 대회 축제 지진 호수 섬 다리 시장 마을 건설 조선 항공 전자 그룹 그러면 이라면 하면 되면 있으면
서로 바로 별로 새로 홀로 주로 대로 도로 통로 회로 진로 위로 스스로 그대로 실제로 때문 로 이로 그것 이것 무엇 누구 어디 언제 사람 도 동
""".split())  # fmt: skip
KO_TITLES = frozenset("""
씨 님 교수 박사 대통령 총리 시장 사장 회장 작가 감독 선수 의원 장관 대표 기자 목사 신부 스님 판사 검사 변호사 선생 선생님 장군 왕 여사 군수 지사
총장 원장 관장 과장 부장 감독관 배우 화백
""".split())  # fmt: skip
KO_ROLES = KO_TITLES - frozenset("씨 님 왕".split()) | frozenset("""
물리학자 화학자 수학자 과학자 천문학자 생물학자 철학자 역사학자 태조 대왕 학자 소설가 시인 화가 작곡가 음악가 건축가 사진가 산악인 등반가 정치인 정치가 기업인
기업가 사업가 배우 가수 무용가 만화가 언론인 독립운동가 창업자 설립자 지휘자 발명가 탐험가 조각가 번역가 의사 간호사 군인 운동가 시인 임금
""".split())  # fmt: skip
KO_SURNAMES = frozenset(
    "김이박최정강조윤장임한오서신권황안송류유홍전고문손양배백허남심노하곽성차주우구민진지엄채원천방공현함변염석선설마길연위표명기반왕금옥육인맹제모탁국여어"
)
KO_GIVEN = frozenset("""민준서연지우현영수진호희은주윤하나경성태재동혁철숙미정순자옥남규상용석훈원기종일승환섭선화인혜란유빈찬율아늘래솔별
봄슬람식건길광국명문배병보복봉부산삼세소순시신심안애양여예오완욱운웅월의익임장전제조준중창천춘충택표필학한해향헌형홍효후휘흥
도윤이계완""".replace("\n", ""))  # fmt: skip
KO_PLACES = frozenset("""
한국 대한민국 조선 북한 남한 서울 부산 대구 인천 광주 대전 울산 세종 경기도 강원도 충청북도 충청남도 전라북도 전라남도 경상북도 경상남도 제주 제주도
전주 수원 춘천 강릉 경주 포항 창원 여수 목포 안동 평양 개성 일본 중국 미국 영국 프랑스 독일 러시아 이탈리아 스페인 인도 캐나다 호주 브라질 도쿄
베이징 런던 파리 베를린 뉴욕 모스크바 로마 유럽 아시아 아프리카 아메리카
""".split())  # fmt: skip
# Syllables that spell foreign names more than Korean words.
KO_FOREIGN = frozenset("드르스크트프그브즈츠베리델만슨턴톤린네르쿠루레메니코로카타파바")
KO_ENDINGS = ("다", "는", "한", "된", "고", "며", "던", "지", "게", "서", "할", "될", "인", "하여", "했던", "니다")
KO_COMMON = frozenset("""
어떤 어느 무슨 누구 누가 무엇 언제 어디 어디에 왜 어떻게 얼마 있다 없다 있나요 인가요 누구인가 누구입니까 어디인가 어디에서 무엇인가 그리고 그러나
하지만 또한 대한 위한 통해 따라 의해 후에 전에 때 것 수 등 및 더 가장 매우 처음 처음으로 뒤 앞 안 밖 위 아래 이후 이전 현재 당시
""".split())  # fmt: skip


@lru_cache(maxsize=1 << 14)
def bare(word: str) -> str:
    """A word as these lists have it."""
    return without_cases(folded(word))


def _words(text: str) -> frozenset[str]:
    return frozenset(map(bare, text.split()))


_FEMININE = """
ingenieur physiker händler professor direktor schriftsteller maler dichter komponist politiker könig präsident kanzler minister
bürgermeister architekt forscher wissenschaftler autor schauspieler sänger regisseur richter unternehmer gründer chemiker
mathematiker astronom historiker philosoph journalist lehrer trainer spieler kaiser graf biologe fürst pianist dirigent
erfinder entdecker bildhauer fotograf pilot kapitän student botschafter senator sprecher leiter rektor dekan
"""
# Who someone is, before the name. In German, Turkish and at the start of a sentence it has a capital too.
ROLES = _words(_FEMININE + " ".join(word + "in" for word in _FEMININE.split()) + """
kaufmann kauffrau doktor herzog herzogin gräfin papst bischof erzbischof general oberst arzt ärztin frau herr bruder schwester
geehrter geehrte lieber liebe sohn tochter vater mutter pfarrer admiral ritter freiherr prinz prinzessin heiliger abt
ingénieur ingénieure physicien physicienne professeur docteur négociant marchand romancier romancière écrivain écrivaine poète
peintre compositeur compositrice roi reine empereur président présidente ministre maire architecte historien historienne
philosophe chimiste mathématicien astronome journaliste acteur actrice chanteur chanteuse réalisateur réalisatrice directeur
directrice général colonel capitaine évêque pape prince princesse duc duchesse comte comtesse madame monsieur mme mlle cher chère
ingeniero ingeniera físico física profesor profesora doctor doctora comerciante novelista escritor escritora poeta pintor pintora
compositor compositora rey reina emperador presidente presidenta ministro ministra alcalde alcaldesa arquitecto arquitecta
historiador historiadora filósofo filósofa químico química matemático matemática astrónomo astrónoma periodista actor cantante
director directora coronel capitán obispo príncipe princesa duque duquesa conde condesa señor señora sr sra srta don doña estimado estimada querido querida
ingegnere fisico fisica professore professoressa dottore dottoressa mercante scrittore scrittrice poetessa pittore pittrice
compositore compositrice re regina imperatore sindaco architetto architetta storico storica filosofo filosofa chimico chimica
matematico matematica astronomo astronoma giornalista attore attrice regista direttore direttrice generale colonnello capitano
vescovo papa principe principessa duca duchessa conte contessa signor signora sig sig.ra gentile egregio caro cara professor dottor ingegner
engenheiro engenheira físico física professora romancista escritora comerciante rei rainha imperador presidente prefeito prefeita
arquiteto arquiteta historiador filósofo químico matemático astrônomo astrónomo jornalista ator atriz cantor cantora diretor
diretora coronel capitão bispo príncipe senhor senhora prezado prezada caro cara
mühendis fizikçi yazar tüccar profesör doktor başkan bay bayan sayın şair ressam kral kraliçe sultan padişah müdür bakan cumhurbaşkanı
başbakan bilgin öğretmen oyuncu şarkıcı yönetmen gazeteci mimar tarihçi kimyager matematikçi filozof besteci avukat hakim paşa
romancı heykeltıraş vali
физик писатель писательница инженер профессор доктор купец директор художник художница поэт поэтесса учёный композитор актёр
актриса режиссёр король королева царь царица император императрица князь княгиня генерал президент министр мэр журналист
журналистка архитектор историк философ математик химик астроном врач певец певица академик адмирал маршал святой патриарх
изобретатель губернатор граф графиня барон полковник капитан лётчик космонавт лейтенант господин госпожа г-н г-жа гражданин гражданка товарищ уважаемый уважаемая уважаемые дорогой дорогая лейтенант скульптор переводчик критик
пан пані шановний шановна фізик фізикиня письменник письменниця інженер інженерка професор професорка купець художниця поетеса вчений вчена композитор
режисер режисерка цариця імператор князь княгиня президентка міністр міністерка журналіст журналістка архітектор історик
філософ хімік лікар лікарка співак співачка академік гетьман отаман святий винахідник
φυσικός μηχανικός καθηγητής καθηγήτρια συγγραφέας έμπορος γιατρός δρ κύριος κυρία κ αγαπητέ αγαπητή πρόεδρος υπουργός βασιλιάς βασίλισσα αυτοκράτορας
ποιητής ποιήτρια ζωγράφος συνθέτης ηθοποιός τραγουδιστής τραγουδίστρια σκηνοθέτης στρατηγός πρωθυπουργός δήμαρχος δημοσιογράφος
αρχιτέκτονας ιστορικός φιλόσοφος μαθηματικός χημικός αστρονόμος επίσκοπος άγιος
""")  # fmt: skip

_KINDS = {
    "organization": """
universidad universität università universite université universidade universiteit academia académie accademia akademie museo musée
museu museum instituto institut istituto banco banque banca partido parti partito partei compañía compagnie compagnia companhia
empresa entreprise società sociedad société sociedade gesellschaft verein verlag hochschule ministerio ministère ministero ministerium
ministério hospital hôpital ospedale krankenhaus escuela école scuola escola schule colegio collège liceo lycée gymnasium club
fundación fondation fondazione fundação stiftung orquesta orchestre orchestra orchester teatro théâtre theater biblioteca
bibliothèque bibliothek asociación association associazione associação federación fédération federazione periódico journal giornale
jornal zeitung firma unternehmen fabrik konzern reederei
üniversitesi müzesi enstitüsü bankası partisi şirketi holding belediyesi bakanlığı derneği vakfı kulübü lisesi hastanesi gazetesi
kütüphanesi tiyatrosu okulu akademisi
университет институт музей академия завод компания банк партия театр библиотека газета общество союз министерство больница школа
фабрика издательство журнал клуб фонд корпорация комитет совет консерватория галерея оркестр училище
університет інститут академія компанія партія бібліотека товариство спілка міністерство лікарня видавництво фундація
πανεπιστήμιο μουσείο ινστιτούτο ακαδημία εταιρεία εταιρία τράπεζα κόμμα θέατρο βιβλιοθήκη εφημερίδα υπουργείο νοσοκομείο σχολείο
ναυπηγείο σύλλογος ομάδα ίδρυμα
""",
    "location": """
ciudad ville città cidade stadt pueblo village villaggio paese vila aldeia dorf gemeinde provincia province provinz región région
regione região estado état stato staat país pays land puente pont ponte brücke calle rue rua straße strasse plaza place piazza praça
platz castillo château castello castelo schloss burg torre tour turm catedral cathédrale cattedrale dom iglesia église chiesa igreja
kirche isla île isola ilha insel barrio quartier quartiere bairro viertel aeropuerto aéroport aeroporto flughafen estación gare
stazione estação bahnhof puerto porto hafen palacio palais palazzo palácio palast parque parc parco park
şehri köyü ilçesi köprüsü adası caddesi sokağı meydanı kalesi kulesi sarayı camii kilisesi mahallesi parkı havalimanı limanı ili kenti
kasabası
город деревня село посёлок область район край республика страна улица площадь мост остров замок крепость собор храм монастырь вокзал
станция аэропорт порт дворец парк башня проспект губерния столица
місто селище країна вулиця площа міст острів фортеця церква вокзал станція палац вежа столиця
πόλη χωριό νομός περιφέρεια χώρα οδός πλατεία γέφυρα γεφύρι νησί κάστρο πύργος ναός μονή λιμάνι αεροδρόμιο σταθμός παλάτι πάρκο δήμος
""",
    "natural object": """
río fleuve rivière fiume rio fluss lago lac see monte mont berg montaña montagne montagna montanha cerro volcán volcan vulcano vulcão
vulkan mar mer mare meer golfo golfe bahía baie baia bucht valle vallée vale tal desierto désert deserto wüste bosque forêt foresta
wald glaciar glacier ghiacciaio gletscher gebirge
nehri gölü dağı denizi ovası vadisi ırmağı körfezi yanardağı çayı
река озеро гора море океан залив вулкан долина пустыня лес ледник хребет пролив водопад
річка гора затока ліс долина пустеля водоспад хребет
ποταμός λίμνη όρος βουνό θάλασσα κόλπος ηφαίστειο κοιλάδα δάσος
""",
    "content": """
novela roman romanzo romance película film filme canción chanson canzone canção lied libro livre livro buch ópera opéra opera oper
romanı filmi kitabı şarkısı роман фильм книга песня опера повесть поэма фільм пісня повість μυθιστόρημα ταινία βιβλίο τραγούδι
""",
    "event": """
batalla bataille battaglia batalha schlacht guerra guerre krieg revolución révolution rivoluzione revolução revolution congreso congrès
congresso kongress festival tratado traité trattato vertrag savaşı muharebesi antlaşması kongresi devrimi битва война революция
конгресс фестиваль договор війна революція конгрес μάχη πόλεμος επανάσταση συνέδριο συνθήκη
""",
}
HEADS: dict[str, str] = {}
for _kind, _list in _KINDS.items():
    for _word in _words(_list):
        HEADS.setdefault(_word, _kind)
# The last part of a German compound that is a name of its own when an article stands before it: am Türkissee.
DE_PARTS = {
    "organization": "philharmonie museum universität hochschule verein verband reederei werke verlag gesellschaft theater bank partei bund akademie",
    "location": "brücke burg stadt dorf platz straße kirche turm schloss tor hafen insel tempel halle dom park allee",
    "natural object": "see berg bach fluss wald tal gebirge gletscher bucht horn spitze",
}
DE_PART = {part: kind for kind, parts in DE_PARTS.items() for part in parts.split()}
DE_COMMON = frozenset(
    """
hauptstadt großstadt innenstadt altstadt vorstadt heimatstadt kleinstadt hafenstadt kreisstadt nachbarstadt partnerstadt neustadt
sportverein marktplatz arbeitsplatz spielplatz parkplatz bahnhofstraße hauptstraße seestraße fachhochschule musikhochschule
weltbank nachbardorf bauernhof weinberg regenwald urwald sandbank datenbank dachverband sportplatz flughafen ostsee nordsee
""".split()
)
# A place mostly follows: in Regensburg, à Lyon, ở Đà Nẵng.
INTO = {
    "de": frozenset("in nach aus bei".split()), "romance": frozenset("à a en em".split()), "ru": frozenset("в во из".split()),
    "uk": frozenset("в у із з".split()), "el": frozenset("στη στην στο στον".split()), "vi": frozenset("ở tại".split()),
    "nl": frozenset("in te naar".split()), "es": frozenset(["en"]),  # "a" stands before persons too
}  # fmt: skip
# What opens a sentence with a capital and is no name, beside the words of grammar that tell the language; months and
# days of a language that writes them so; the polite you of Russian.
OPENING = {name: frozenset(words.split()) for name, words in {
    "es": """
        le les me te nos os mi mis tu tus nuestro nuestra hay está están fueron hoy ayer mañana ahora aquí allí primero después
        antes también además si ya aún todavía cada todo todos toda todas otro otra pero porque aunque mientras así sólo solo
        muchos muchas algunos algunas ese esa esos esas aquel aquella dónde cómo cuándo cuánto cuántos cuáles ni o""",
    "fr": """
        je tu on me te y si mon ma mes ton ta tes notre nos votre vos leur leurs hier demain aujourd'hui ici là aussi ainsi puis
        alors donc chaque tout tous toute toutes plusieurs certains quand pourquoi comment combien voici voilà cet""",
    "it": """
        mi ti ci vi lui lei noi voi loro io tu mio mia tuo tua nostro nostra oggi ieri domani qui ora prima poi ogni tutto tutti
        tutte quando dove perché come quale quali quanto ma se anche solo quel quella quei""",
    "pt": """
        eu tu nós você vocês me te lhe lhes meu minha nosso nossa hoje ontem amanhã agora aqui ali primeiro depois antes também
        cada todo todos toda todas outro outra porque enquanto se já ainda qual quais quanto esse essa isso isto""",
    "nl": """
        ik jij je we wij u mijn ons onze vandaag gisteren morgen nu hier daar eerst dan daarna elk elke alle alles waarom hoe
        hoeveel welke welk als toen""",
    "tr": """
        ben sen biz siz onlar o şu bunlar şunlar önce sonra ancak ama fakat çünkü bugün dün yarın şimdi burada orada geçen gelecek
        bütün tüm bazı birçok evet hayır lütfen neden niçin eğer hem iki üç ocak şubat mart nisan mayıs haziran temmuz ağustos
        eylül ekim kasım aralık pazartesi salı çarşamba perşembe cuma cumartesi pazar""",
    "vi": """
        tôi chúng ta bạn anh chị em nó họ cô chú hôm sáng chiều ngày tháng năm tuần theo vì nếu nhưng mà cũng hãy xin kính sẽ đang
        bây lúc mỗi mọi nhiều đó thì""",
    "ru": """
        вы вам вас вами ваш ваша ваше ваши вашего вашему вашей мы я ты мне нам нас мой моя мои наш наша наши вот здесь там тогда
        сейчас сегодня вчера завтра утром вечером днём сначала потом затем если хотя поэтому однако ещё уже все всё каждый да нет
        можно нужно чтобы почему зачем куда откуда во ко""",
    "uk": """
        ви вам вас вами ваш ваша ми я ти мені нам нас мій моя наш наша ось тут там тоді зараз сьогодні вчора завтра спочатку потім
        якщо хоча тому однак ще вже всі все кожен так ні можна треба щоб чому навіщо куди""",
    "el": """
        εγώ εσύ εμείς εσείς μου σου μας σας σήμερα χθες αύριο τώρα εδώ εκεί πρώτα ύστερα έτσι όμως αλλά αν όταν κάθε όλοι όλα
        γιατί επίσης""",
}.items()}  # fmt: skip
# At the start of a line and before a colon: the head of a letter or of minutes, not who speaks.
LABELS = _words("""
asunto fecha asistentes presentes lugar de para pregunta respuesta nota tema
objet date présents lieu à question réponse note sujet
oggetto data presenti luogo da domanda risposta nota
assunto data presentes local pergunta resposta
onderwerp datum aanwezig vraag antwoord
betreff datum anwesend ort von an frage antwort teilnehmer thema
konu tarih katılanlar yer kimden kime soru cevap yanıt not
тема дата присутствовали место кому от вопрос ответ примечание участники повестка
дата присутні місце кому від питання відповідь
θέμα ημερομηνία παρόντες τόπος προς από ερώτηση απάντηση
""")
# A number before one of these is the day of a date.
MONTH = re.compile(
    r" (?:de )?(?:(?:янв|фев|мар|апр|июн|июл|авг|сен|окт|ноя|дек)[а-я]*|ма[яй]|(?:січ|лют|берез|квіт|трав|черв|лип|серп|верес|жовт"
    r"|листоп|груд)[а-яі]*|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|janvier|février"
    r"|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre"
    r"|ottobre|dicembre|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|dezembro)\b"
)
# Verbs after the subject of a first sentence.
SAYS = frozenset("""
ist war liegt wurde gehört befindet entstand est était fut se es fue era está é foi fica era è fu si ligt was είναι ήταν bir это là
является находится расположен розташований лежит лежить є
""".split())  # fmt: skip
FOREIGN_GIVEN = _words("""
konrad otmar justus egon selma hannelore anselm nils friedrich jürgen jörg günther heinz dieter uwe klaus lothar manfred helmut
bettina sabine ingrid gisela ursula anneliese hildegard katharina wolfgang gerhard rainer bernd ulrich matthias sebastian lukas jonas
gaspard hélène irène octave anselme émile étienne françois gérard guillaume henriette jacqueline juliette laurent léon mathieu
mathilde michèle rené sébastien sylvie thérèse yves agnès benoît cécile céline élise édouard
gaspar emilio octavio anselmo irene ignacio javier josé joaquín alejandro álvaro beatriz carmen diego elvira esteban fernando
carlos andrés marta tomás juan pedro luis antonio manuel francisco pablo sergio alberto roberto ricardo eduardo enrique
mario óscar raúl rubén víctor adrián iván hugo lucas julián julio maría ana laura sara paula cristina elena rosa raquel
silvia patricia mónica alicia nuria nerea marina rocío gonzalo guillermo inés isabel jaime lucía luisa mercedes miguel pilar ramón rafael rodrigo sancho teresa vicente joão otávio emílio
ana carlos antónio antônio josé luís manuel miguel fernanda mariana beatriz rui nuno helena paulo pedro tiago gaspare ottavio giuseppe giacomo giulia giulio lorenzo luca luigi matteo paola pietro raffaele salvatore
marco andrea davide alessandro giovanni antonio mario carlo roberto fabio simone riccardo federico elisa anna laura valentina
martina sofia giorgia silvia stefano vincenzo chiara francesca
ahmet mehmet mustafa ali ayşe fatma emine hatice zeynep yusuf ömer selma enver cengiz samim nebil hasan hüseyin ibrahim murat orhan
işıl çağrı aylin ayça barış başak berk burcu cemal ceren derya ece emel erdem ferhat gamze gökhan gül gülşen halil ilker irem
kadir kaan kerem mahmut melek meltem merve murat necla nermin nihat onur oya özge pelin pınar ramazan recep rıza sedat
seda selin serkan sevgi sevim sibel şule taner tolga tuğba tülay ufuk umut volkan yasemin yaşar yavuz kemal ismail osman süleyman selim elif leyla hakan burak emre cem can deniz
владимир александр александра иван николай михаил сергей алексей андрей дмитрий пётр анна мария елена вера ирина ольга наталья
татьяна светлана людмила григорий тимофей фёдор павел олег игорь борис василий виктор евгений константин лев максим роман семён
степан юрий яков антон артём виталий георгий денис кирилл леонид никита пантелей тарас екатерина дарья софья зоя надежда любовь
галина валентина марина дмитрий вадим валерий вячеслав геннадий глеб егор илья кирилл матвей станислав эдуард алёна алла вера
виктория жанна инна лариса лидия маргарита нина оксана полина раиса тамара юлия яна
остап оксана данило андрій ірина михайло володимир олександр микола сергій олексій дмитро петро олена ольга наталія тетяна григорій
тимофій павло борис василь віктор євген кирило юрій богдан тарас іван марія катерина софія ганна леся
στέφανος ελένη λεωνίδας νικόλαος ανδρέας ειρήνη μιχαήλ αντώνης γιώργος γεώργιος κώστας κωνσταντίνος δημήτρης δημήτριος γιάννης
ιωάννης μαρία αικατερίνη σοφία άννα βασίλης παναγιώτης χρήστος σπύρος ελευθέριος οδυσσέας θεόδωρος αλέξανδρος μανώλης
""")  # fmt: skip
VI_SURNAMES = _words(
    "nguyễn lê trần phạm hoàng huỳnh vũ võ đặng bùi đỗ hồ ngô dương lý phan trương đinh đoàn trịnh mai lương tô đào"
)
VI_HEADS = {
    "organization": "Đại học|Học viện|Bảo tàng|Bệnh viện|Ngân hàng|Viện|Trường|Nhà hát|Tập đoàn|Thư viện|Đảng",
    "location": "Cầu|Chùa|Đền|Sân bay|Công viên|Quảng trường",
}
VI_BEFORE = {
    "location": "thành phố|tỉnh|huyện|xã|quận|thị xã|làng|đảo|phường|nước",
    "natural object": "sông|núi|hồ|vịnh|biển|suối",
    "organization": "công ty|tổ chức|hãng",
    "person": "ông|bà|tiến sĩ|giáo sư|nhà văn|kỹ sư|thương nhân|nhà thơ|ca sĩ|nhạc sĩ|họa sĩ|bác sĩ|vua|hoàng đế|tướng|chủ tịch|thủ tướng"
              "|diễn viên|đạo diễn",
}  # fmt: skip


ZH_HEADS = {
    "organization": """
        大学 学院 中学 小学 公司 集团 委员会 研究所 研究院 银行 协会 学会 联盟 组织 政府 法院 检察院 医院 出版社
        报社 电视台 乐团 乐队 球队 俱乐部 党 部队 舰队 军团 教会 基金会 博物馆 图书馆 社 局 署 厅 厂 队 大學
        學院 銀行 協會 圖書館 株式会社 会社 研究室 実験室 实验室 理事会 议会 国会 商会 工作室 电台 航空""",
    "location": """
        省 市 县 区 镇 乡 村 州 郡 府 路 街 站 车站 机场 港 桥 大桥 寺 庙 宫 殿 塔 教堂 座堂 公园 广场 隧道 铁路
        公路 高速公路 地铁 线 城 国 共和国 王国 帝国 自治区 特别行政区 半岛 群岛 岛 地区 縣 區 國 県 駅 町 線
        神社 体育场 球场 遗址 苑 邨""",
    "natural object": "江 河 湖 海 山 山脉 峰 沙漠 盆地 平原 高原 海峡 海湾 瀑布 川 星 彗星 小行星",
    "event": """
        战争 战役 之战 之乱 革命 起义 运动会 奥运会 世界杯 锦标赛 联赛 杯 电影节 博览会 事件 惨案 地震 条约 大会
        案""",
    "content": "日报 晚报 杂志 周刊",
    "concept": "定理 定律 主义 综合征 症 病 学 论 教 派 語 语 法",
    "person": "天皇 皇帝 皇后 太后 公主 亲王 将军 国王 女王",
    "creature": "科 属",
}
ZH_HEAD_TYPE: dict[str, str] = {}
for _type, _words in ZH_HEADS.items():
    for _word in _words.split():
        ZH_HEAD_TYPE.setdefault(_word, _type)
# Characters that glue sentences together: they bound a character n-gram and never end a person's name.
ZH_FUNCTION = frozenset(
    "".join(
        """
的了是在和与與及或等也都而于於以为為被把从從向对對由将將曾又亦就才只仅僅并並但不没沒有这這那其之所者着著过過会會可能要
该該此每各使让讓给給到来來去上下中里裡内內外前后後时時年月日个個名次位种種些我你他她它们們吗嗎呢吧呀谁誰哪何什么麼怎多
少很最更还還再便即则則因如若当當
""".split()
    )
)
ZH_TRAIL = frozenset(
    "".join(
        """
于於以为為在是有和与與及曾现現将將被把从從向对對的了也都即又则則便说說称稱任至使让讓给給后後时時等得能就却卻并並
""".split()
    )
)
# Common nouns that the segmenter's lists call names, and nouns too general to be worth a candidate.
ZH_DULL = frozenset(
    """
时候 原因 作用 特点 方面 情况 问题 部分 其中 当时 人员 方式 方法 时间 地方 地点 东西 内容 意思 意义 关系 结果 过程 开始
目的 数量 类型 名字 名称 名单 以上 以下 期间 之后 之前 之间 一些 目前 成为 主要 国家 世界 全国 国际 地区 王朝 关系密切
大家庭 大家 友谊赛 加盟 长大 出生 毕业 工作 活动 影响 使用 生活 发展 研究 设计 管理 建设 建立 第一 一般 一样 同时 公司
大学 学校 学生 人口 城市 政府 音乐 电影 作品 历史 文化 社会 经济 政治 系统 项目 工程 技术 代表 先生 女士 小姐 老师 父亲
母亲 爸爸 妈妈 父母 儿子 女儿 兄弟 哥哥 弟弟 姐姐 妹妹 姐妹 妻子 丈夫 孩子 祖父 祖母 爷爷 奶奶 外公 外婆 叔叔 伯父 舅舅 姑姑
阿姨 岳父 岳母 侄子 外甥 孙子 孙女 女婿 媳妇 人物 主角 职业 职位 职务 身份 能力 机会 位置 面积 距离 高度 长度 总数 人数 年龄 身体
效力 出场 上场 司职 主席 总统 总理 董事长 总裁 经理 教授 博士 作者 主持人 用途 优势 措施 标志 条件 性格 状态 生涯 现代
古代 公里 平方公里 公元 人们 自己 成员 哪些地方 什么 为什么 怎么 哪里 国籍 爱好 习性 建筑 地理 线路 港口 赛季 球队 比赛
称号 冠军 本人 上海话 对方 全部 全长 任命 下令 认为 表示 开通 作战 成功 一人 两人 三人 首次 后来 此时 左右 以来 以及
官员 军队 人民 民众 居民 群众 士兵 家族 家庭 朋友 角色 故事 游戏 专辑 歌曲 歌手 演员 导演 球员 运动员 选手 东北 西南
东南 西北 大洋 冰河 佛典 广义 狭义 遮阳 朝东 十字 学名 交汇处 史前 权威 王权 道德 全球 卫星 总之 其他 大部 北部 南部
东部 西部 中部
""".split()
)
ZH_SURNAMES = frozenset(
    "".join(
        """
赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏水窦章云苏潘葛奚范彭郎鲁韦昌马苗凤花方俞任袁
柳鲍史唐费廉岑薛雷贺倪汤滕殷罗毕郝邬安常乐于时傅皮卞齐康伍余元卜顾孟平黄和穆萧尹姚邵湛汪祁毛禹狄米贝明臧计伏成戴谈宋茅
庞熊纪舒屈项祝董梁杜阮蓝闵席季麻强贾路娄危江童颜郭梅盛林刁钟徐邱骆高夏蔡田樊胡凌霍虞万支柯管卢莫房裘缪解应宗丁宣邓郁单
杭洪包诸左石崔吉龚程嵇邢滑裴陆荣翁荀羊惠甄曲封芮储靳焦巴牧车侯全班秋仲伊宫宁仇栾甘厉祖武符刘景詹束龙叶司黎乔苍双闻党翟
谭贡姬申扶冉桑桂牛寿边尚温庄晏柴瞿阎连习艾容向古易廖耿匡文寇关沙曾辛简饶丰游查岳权商佘佟佐赫白涂楼欧上东皇尉公慕端独南
呼
""".split()
    )
)
ZH_SURNAMES_TWO = frozenset(
    """
欧阳 司马 诸葛 上官 东方 皇甫 尉迟 公孙 慕容 令狐 司徒 司空 夏侯 端木 独孤 南宫 长孙 宇文 完颜 爱新 织田 武田 石田 德川
丰臣 上杉 北条 伊达 真田 明智 足利 佐藤 铃木 高桥 田中 渡边 伊藤 山本 中村 小林 加藤 吉田 山田 松本 井上 木村 清水 藤原
""".split()
)
# Characters that spell foreign names.
ZH_SOUNDS = frozenset(
    "".join(
        """
阿埃艾安昂奥巴拜班邦保鲍贝本比彼宾波伯勃博布采查达戴丹当道德登迪蒂丁东杜敦顿多恩尔法凡菲费芬佛夫弗福盖甘冈戈格葛古圭哈
海汉豪赫亨华怀惠霍基吉加嘉杰金卡凯坎康科可克肯库夸拉莱赖兰朗劳勒雷里利莉丽列林琳留龙隆娄卢鲁路伦罗洛马玛迈麦曼芒梅门蒙
米密缪摩莫默姆穆纳娜内尼涅宁纽农努诺欧帕派潘庞佩彭皮平坡珀普齐契乔钦琴琼丘热日荣茹瑞若撒萨塞赛桑瑟沙莎山舍申圣施史士什
斯丝苏索塔泰坦汤唐特藤提图托瓦万旺威韦维魏温文翁沃乌武西希锡夏香肖谢辛休许雪雅亚延扬耶叶伊易因英尤于约泽扎詹珍芝智兹子
佐茨茜薇蕾黛妮彻迦澳菈奇奈蓬芙露娅瓜朵黎柏伐墨荷逊雄仑伽侬厄哥奎妥姬岑帝捷斐森楚欣汀浩渥珊琪瑙祖窦茵蓓陀颇黑咸
""".split()
    )
)
# What people are called by behind their names, in both spellings: 王女士, 陈思远老师.
ZH_TITLES = tuple(sorted((
    "先生 女士 小姐 太太 夫人 老师 老師 教授 副教授 博士 医生 醫生 大夫 护士 律师 律師 法官 经理 經理 总经理 總經理 总监 總監 "
    "主任 院长 院長 校长 校長 所长 所長 部长 部長 局长 局長 处长 處長 科长 科長 市长 市長 省长 省長 县长 縣長 镇长 鎮長 村长 "
    "村長 书记 書記 主席 总统 總統 总理 總理 总裁 總裁 董事长 董事長 工程师 工程師 师傅 師傅 同学 同學 同志 队长 隊長 船长 船長 "
    "站长 站長 馆长 館長 会长 會長 秘书 秘書 助理 议员 議員 委员 委員 法师 法師 大师 大師 教练 教練 导演 導演"
).split(), key=lambda title: -len(title)))


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
ford pat rose ruby skip angel cruz oscar
""".split())  # fmt: skip
NEVER = DEMONYMS | MONTHS


def _caseless_words(text: str) -> frozenset[str]:
    return frozenset(map(folded, text.split()))


def _caseless_kinds(rows: dict[str, str]) -> dict[str, str]:
    return {folded(word): kind for kind, words in rows.items() for word in words.split()}


# Before the name and no part of it: the city of, Dr.
CASELESS_TITLES = _caseless_kinds({
    "location": """
        مدينة قرية محافظة إقليم ولاية حي شارع دولة جزيرة بلدة منطقة
        شهر روستای استان شهرستان خیابان جزیره کشور بخش
        העיר עיר הכפר הרחוב השכונה האי מדינת עיירת העיירה המושבה""",
    "natural object": """
        نهر جبل جبال بحيرة بحر وادي خليج بركان صحراء رود رودخانه کوه دریاچه دریای دشت
        נהר הנהר הר ההר אגם האגם נחל ים""",
    "person": """
        السيد السيدة الدكتور الدكتورة د الأستاذ الأستاذة البروفيسور المهندس المهندسة الرئيس الملك الملكة الأمير الأميرة الشيخ الإمام
        الكاتب الكاتبة الشاعر الشاعرة التاجر الرحالة العالم العالمة الفنان الفنانة الممثل الممثلة المخرج الوزير الوزيرة اللاعب
        المدرب الروائي الروائية الصحفي الصحفية القائد الجنرال السلطان الخليفة القاضي الطبيب الطبيبة المؤرخ الفيلسوف المغني المغنية
        ابنه ابنها ابنته ابنتها زوجته زوجها أخوه أخوها أخيه أخته أختها والده والدها والدته والدتها شقيقه شقيقته جده جدته عمه خاله حفيده
        دکتر مهندس آقای خانم استاد پروفسور شاه ملکه امام حضرت سردار شاعر
        ד"ר דר פרופ' פרופ פרופסור מר גברת גב' הרב הסופר הסופרת הסוחר הסוחרת המהנדס המהנדסת המשורר המשוררת הנשיא הנשיאה
        השר השרה השחקן השחקנית הזמר הזמרת הצייר הציירת המלך המלכה הנסיך החוקר החוקרת המדען המדענית הבמאי הבמאית הגנרל
        העיתונאי העיתונאית האדריכל האדריכלית הפיזיקאי הפיזיקאית השופט השופטת
        डॉ डॉक्टर श्री श्रीमती सुश्री प्रो प्रोफेसर प्रोफ़ेसर लेखक लेखिका इंजीनियर व्यापारी राजा रानी महाराजा सम्राट प्रधानमंत्री राष्ट्रपति
        मंत्री मुख्यमंत्री अभिनेता अभिनेत्री कवि कवयित्री वैज्ञानिक गायक गायिका निर्देशक खिलाड़ी संत पंडित जनरल कप्तान पत्रकार चित्रकार
        बेटे बेटा बेटी पुत्र पुत्री पत्नी पति भाई बहन पिता माता चाचा दादा दादी""",
})  # fmt: skip
# Before the name and a part of it: the University of.
CASELESS_HEADS = _caseless_kinds({
    "organization": """
        جامعة شركة وزارة حزب بنك مصرف مؤسسة معهد مدرسة كلية متحف مكتبة مستشفى جمعية منظمة نادي صحيفة جريدة مجلة هيئة مجلس مطار دار
        دانشگاه شرکت وزارت بانک موسسه موزه مدرسه دبیرستان بیمارستان انجمن سازمان روزنامه باشگاه کتابخانه بنیاد فرودگاه
        אוניברסיטת חברת מוזיאון מכללת משרד מפלגת בנק ארגון עמותת מכון קבוצת עיתון תנועת ספריית קרן עיריית תיאטרון""",
    "location": "جسر برج قصر قلعة مسجد ميدان ساحة پل کاخ قلعه میدان مسجد גשר כיכר מצודת קיבוץ מושב כפר",
    "event": "معركة حرب ثورة مهرجان معاهدة جنگ نبرد انقلاب جشنواره קרב מלחמת פסטיבל הסכם",
})  # fmt: skip
# After the name in Hindi: whether it is a part of the name stands in HINDI_OUT.
HINDI_HEADS = _caseless_kinds({
    "location": "शहर नगर गाँव गांव कस्बा जिला ज़िला जिले ज़िले राज्य प्रांत द्वीप पुल मंदिर किला किले महल स्टेशन हवाई_अड्डा",
    "natural object": "नदी झील पर्वत पहाड़ पहाड़ी सागर घाटी जलप्रपात",
    "organization": """
        विश्वविद्यालय महाविद्यालय कॉलेज विद्यालय कंपनी कम्पनी बैंक संस्थान संग्रहालय पार्टी दल अखबार अख़बार परिषद आयोग समिति अस्पताल
        पुस्तकालय संघ निगम समूह लिमिटेड इंडस्ट्रीज इलेक्ट्रिक इलेक्ट्रॉनिक्स मोटर्स ट्रांसपोर्ट टेक्नोलॉजीज""",
    "event": "युद्ध आंदोलन सम्मेलन महोत्सव संधि",
    "person": "जी साहब",
})  # fmt: skip
HINDI_OUT = _caseless_words("शहर गाँव गांव कस्बा जिला ज़िला जिले ज़िले राज्य प्रांत जी साहब नदी")
HINDI_BORN = _caseless_words("जन्म मृत्यु निधन विवाह पत्नी पति पुत्र पुत्री पिता माता बेटा बेटी भाई")
# What a person does: in Arabic the name comes after it, in Hebrew before it.
VERBS = _caseless_words("""
ولد ولدت توفي توفيت قال قالت كتب كتبت أسس أسست قاد قادت زار زارت اكتشف اكتشفت اخترع رسم رسمت غنى غنت ألف ألفت تولى تولت تزوج تزوجت
درس درست عاش عاشت اغتيل انتخب انتخبت يعيش تعيش
נולד נולדה כיהן כיהנה זכה זכתה כתב כתבה ייסד ייסדה בנה בנתה גר גרה מת מתה נפטר נפטרה למד למדה עבד עבדה ניהל ניהלה גילה גילתה
הקים הקימה נבחר נבחרה התגורר התגוררה
""")  # fmt: skip
# Given names with which a person begins.
CASELESS_GIVEN = _caseless_words("""
محمد أحمد محمود علي حسن حسين خالد عمر يوسف إبراهيم عبد مصطفى سامي سمير نبيل كريم طارق وليد زياد فيصل سعيد رشيد حسام هشام عادل
جمال كمال ماجد ناصر أنور أسامة بلال جابر حمزة رامي سليمان صالح عثمان فارس فؤاد قاسم مروان منصور نزار هاني ياسر يحيى ليلى فاطمة
عائشة مريم زينب خديجة سلمى هدى نور سارة أمينة رنا ريم دينا نادية سميرة منى هند لينا نجيب صلاح طه جبران غسان أدونيس نزار فيروز هارون المتنبي عباس حافظ توفيق إحسان سعد
رضا مهدی حسین کاوه آرش بهرام داریوش فرهاد کیان امید امیر بابک سهراب رستم کوروش سعید هوشنگ پرویز جمشید لیلا شیرین نسرین مینا
پروین زهرا نازنین آذر
יואב עמוס דוד משה יוסף אברהם יצחק יעקב שמעון דניאל אורי גדעון שלמה אליהו רון עידו נועם איתן אלון גיל ערן אבי בנימין שרה רחל לאה
רבקה מיכל תמר נועה רות מרים חנה יעל דנה שירה טל ענת אסתר דבורה שמואל גולדה חיים מנחם יגאל אריאל אהוד נתן זאב בנצי צבי אפרים לוי נפתלי מאיר שמשון עוז עמית עדי מאיה נעמי לאה רונית אילנה
अमित विक्रम राहुल राम मोहन सोहन रमेश सुरेश महेश दिनेश राजेश संजय विजय अजय अनिल सुनील अशोक आनंद नवीन प्रवीण रवि राज राजीव संदीप
मनोज विनोद अर्जुन कृष्ण गोपाल हरि शंकर जवाहरलाल महात्मा इंदिरा सोनिया मीरा सीता गीता अनीता सुनीता कविता सारिका लता आशा उषा
प्रिया पूजा नेहा रेखा माया विकास रोहन रोहित करण आदित्य गौरव सचिन नितिन मुकेश राकेश नरेश गणेश दीपक पंकज मोहित अंकित अर्चना दीपा
किरण ज्योति स्वाति शालिनी मंजू रश्मि प्रीति सुमन कमला विमला
""")  # fmt: skip
JOINING = _caseless_words("بن ابن بنت أبو أبي أم عبد آل الدين الله بو بنت בן בת אבו בר")  # the name goes on after these
TWO_WORDS = _caseless_words("نيو سان تل نווה נווה תל בית קרית קריית כפר גבעת רמת בני ראש באר הר גן עין מעלה נוף פתח")
CASELESS_PLACES = _caseless_words("""
مصر سوريا لبنان الأردن العراق السعودية الكويت قطر البحرين عمان اليمن فلسطين إسرائيل ليبيا تونس الجزائر المغرب السودان تركيا إيران
فرنسا ألمانيا بريطانيا إيطاليا إسبانيا روسيا الصين اليابان الهند أمريكا أوروبا أفريقيا آسيا القاهرة دمشق بيروت بغداد الرياض جدة مكة
الإسكندرية القدس غزة حلب الدوحة دبي أبوظبي الخرطوم طرابلس الرباط لندن باريس برلين موسكو روما مدريد واشنطن نيويورك إسطنبول طهران
ایران تهران اصفهان شیراز تبریز مشهد قم اهواز بوشهر کرمان یزد رشت افغانستان کابل عراق ترکیه فرانسه آلمان انگلستان روسیه چین ژاپن
هند آمریکا اروپا لندن پاریس برلین
ישראל ירושלים חיפה אילת אשדוד אשקלון טבריה צפת נצרת עכו נתניה רחובות מצרים ירדן לבנון סוריה טורקיה צרפת גרמניה אנגליה בריטניה
איטליה ספרד רוסיה סין יפן הודו אמריקה אירופה אפריקה לונדון פריז ברלין מוסקבה רומא קהיר
भारत दिल्ली मुंबई कोलकाता चेन्नई बेंगलुरु हैदराबाद पुणे जयपुर लखनऊ कानपुर वाराणसी पटना भोपाल इंदौर सूरत अहमदाबाद आगरा इलाहाबाद
प्रयागराज अमृतसर शिमला देहरादून राँची रांची गुजरात राजस्थान पंजाब हरियाणा बिहार बंगाल केरल तमिलनाडु महाराष्ट्र कर्नाटक असम
पाकिस्तान नेपाल श्रीलंका बांग्लादेश चीन जापान अमेरिका इंग्लैंड ब्रिटेन फ्रांस जर्मनी रूस लंदन पेरिस एशिया यूरोप
""")  # fmt: skip
# Too common to be a name: words of time and measure, adjectives, verbs that stand beside names.
# Unfolded "على" is "on"; folded it is Ali.
ON = frozenset("على وعلى فعلى".split())
CASELESS_COMMON = STOP_WORDS | ON | _caseless_words("""
عام سنة يوم شهر قرن كبير كبيرة صغير صغيرة جديد جديدة قديم قديمة أول أولى الأول الأولى الأولى العربية العربي الوطنية الوطني الدولية
الدولي العامة العام الخاصة المحلية تقع يقع بنى بنت أسس أسست تأسست تأسس حصل حصلت أصبح أصبحت عمل عملت تعمل يعمل كتب كتبت ولد ولدت
توفي توفيت عاش افتتح افتتحت انعقد ترجم ترجمت وصل وصلت فعل قال قالت وقد لبناء قرب مديرا جائزة كتاب رواية مؤتمر الناس أهل مقر مكتبا
المكتب الضيوف مكتب مدير هادئة مياه بعثة استقبل جميع حيث حول خلال ضمن أكثر غير هناك منذ حتى لدى واحد واحدة عدد كرمت ما
سال روز ماه قرن بزرگ کوچک جدید قدیم ساخت داد دارد داشت گرفت کرد کرده شده بنیاد گذاشت درس می‌دهد نوشت چیست کیست کار قرار کنار
دفتر مدیر گشود ترجمه جایزه کتاب رمان برگزار همایش مهمانان پذیرایی درگذشت گروه بالای نام بازرگانی نخست اول دوم هر دو سه بسیار
שנת שנה יום חודש גדול גדולה קטן קטנה חדש חדשה ישן ישנה ראשון ראשונה שוכנת שוכן בנה בנתה ייסד ייסדה נולד נולדה מת מתה חי חיה
כתב כתבה עבד עבדה עובד עובדת חוקר חוקרת זכה זכתה פתח פתחה נפתח התקיים התקיימה העניקה העניק בשנת גשר הגשר ספר הספר פרס כנס הכנס
משרד המשרד משרדיה האורחים תושבי גדות בידי תורגם אירח מנהל מעל עשה גרה גר אוניות המשלחת שקטים
साल वर्ष दिन महीना सदी बड़ा बड़ी बड़े छोटा छोटी नया नई पुराना पुरानी पहला पहली दूसरा स्थित स्थापना मुख्यालय पुरस्कार कार्यालय निदेशक
किनारे नीचे ऊपर काम बसा बना बनवाया दिया दी दिए खोला खोली लिखा लिखी मिला मिली बने बनी पढ़ाती पढ़ाता हुए रहा रही रहे था बाद पहले
मेहमानों मैं हम आप तुम मेरा मेरी मेरे हमारा हमारी हमारे आपका आपकी आपके उनका उनकी उनके उसका उसकी उसके
स्वागत अनुवाद उपन्यास किताब पुस्तक भौतिकी दल लोग लोगों द्वारा सबसे अधिक बहुत कई सभी कुछ यहाँ वहाँ लोहार
""")  # fmt: skip

THAI_HEADS = {
    "organization": "มหาวิทยาลัย บริษัท โรงเรียน วิทยาลัย พิพิธภัณฑ์ ธนาคาร โรงพยาบาล สถาบัน พรรค สมาคม มูลนิธิ หอสมุด กระทรวง สโมสร",
    "location": "จังหวัด อำเภอ ตำบล เมือง ประเทศ หมู่บ้าน เกาะ สะพาน ถนน วัด สนามบิน ปราสาท เขต แขวง",
    "natural object": "แม่น้ำ ทะเลสาบ ภูเขา ดอย น้ำตก อ่าว",
    "event": "สงคราม เทศกาล",
}
THAI_KIN = tuple("ยาย ย่า ปู่ พ่อ แม่ ลุง ป้า น้า ครู หมอ".split())  # whom คุณ makes no name of
THAI_TITLES = "นางสาว นาย นาง คุณ ดร. ศาสตราจารย์ อาจารย์ พระ สมเด็จ พล.อ. เจ้าชาย เจ้าหญิง หม่อม เด็กชาย เด็กหญิง".split()
THAI_STOPS = """
ตั้งอยู่ ก่อตั้ง เปิด เป็น ได้รับ ได้ สร้าง สอน ทำงาน เขียน แปล ใน ที่ ของ และ อยู่ โดย คือ จาก กับ เพื่อ มี จัดขึ้น ต้อนรับ ริม ซึ่ง เมื่อ ถูก
ใต้ ให้ ว่า จึง แต่ หรือ จะ ไม่ ต่อ ด้วย เดินทาง เกิด เสียชีวิต ผลิต ตาม เขา แล้ว ยัง กล่าว ประกาศ ชนะ ไหล ผ่าน ชื่อ ประกอบ แห่งแรก แห่งหนึ่ง แต่งงาน ลงนาม เริ่ม สิ้นสุด ตั้งชื่อ
ควร ต้อง กำลัง เพราะ แจ้ง เสนอ ขาย ซื้อ ทำ บอก พบ ตอบ กิโลเมตร
""".split()
THAI_PLACES = """
ประเทศไทย ไทย กรุงเทพมหานคร กรุงเทพฯ กรุงเทพ เชียงใหม่ เชียงราย ภูเก็ต ขอนแก่น นครราชสีมา อยุธยา สุโขทัย สงขลา หาดใหญ่ ชลบุรี พัทยา
ระยอง ลำปาง ลำพูน น่าน อุบลราชธานี อุดรธานี กระบี่ ลาว กัมพูชา พม่า เวียดนาม มาเลเซีย จีน ญี่ปุ่น อังกฤษ ฝรั่งเศส เยอรมนี อเมริกา
สหรัฐอเมริกา อินเดีย ลอนดอน ปารีส โตเกียว
""".split()
