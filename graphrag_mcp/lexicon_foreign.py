"""Word lists for names in languages that have capitals and are not English: plain data, and the folding of its keys.

Takes nothing, gives maps of folded words; knows nothing of texts. Words of Cyrillic and Greek stand without the endings
of their cases, so that one entry serves all of them. Every list is a hint, never a gate alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

from graphrag_mcp.stems import folded, without_cases


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
# Who somebody is, before the name. In German, Turkish and at the start of a sentence it has a capital too.
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
GIVEN = _words("""
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
