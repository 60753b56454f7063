"""Text of a document that reads like an instruction to a model, as a call of a tool or as a request
for secrets, in many languages. Only finds: nothing is removed.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Each pattern stands behind the words without one of which it cannot match, because looking for
# words is a hundred times faster: a text in which no one speaks to a model costs next to nothing.
# Contracts, news and manuals are full of "disregard any prior agreement" and "do not show the
# password": so an order must name what only a reader of prompts has (previous instructions, a
# system prompt), and in most languages stand where an order stands, at the beginning. where an
# order begins: a text, a line, a sentence, behind "please"; nothing but a look at what is before
_FIRST = (
    r"(?:(?<=[\n.!?:;>(\[\"“„«*|—#])|(?<=[.!?:;>(\[\"“„«*|—#-]\s)|(?<=\s\s)|(?<![\s\S])|(?<=\bplease\s)|(?<=\bnow\s)|"
    r"(?<=\bmust\s)|(?<=\bthen\s)|(?<=\bbitte\s)|(?<=\bpor favor\s))"
)
# between two words, wrapped lines and emphasis included; no apostrophe: "your doctor's rules"
_S = r"[\s*_`\"“”,]{1,4}"
_VERBS = "ignore|disregard|forget|override|bypass|overlook|discard|stop following|do not follow|don't follow"
_ORDER = (  # or in the middle of a sentence, to the one that reads it
    rf"(?:{_FIRST}|(?<=,\s)|(?<=\band\s)|(?<=\bjust\s)|(?<=\balso\s)|(?<=\byou\s)|(?<=\byou to\s)|(?<=\byou (?:must|will)\s)|"
    r"(?<=\byou can\s)|(?<=\byou should\s)|(?<=\byou (?:need|have) to\s)|(?<=\byou are to\s)|(?<=\binstead\s)|"
    r"(?<=\bimmediately\s))"
)
_SOME = rf"{_S}(?:(?:all|any|every|each|of|the|your|my|these|those|its|our|other){_S}){{0,4}}"
_PRIOR = "previous(?:ly given)?|prior|above|earlier|preceding|foregoing|existing|original|initial|system|developer|safety"
_BEFORE = rf"(?:(?:{_PRIOR}){_S}(?:(?:and|or){_S})?){{1,3}}"
_ORDERS = "instructions?|prompts?|directives?|programming|guardrails"
_OF_PEOPLE = (  # what people gave to people: "instructions issued by the former engineer"
    rf"(?!{_S}(?:(?:issued|received|served)\b(?!{_S}to{_S}you)|(?:given|made|sent|signed){_S}by\b(?!{_S}(?:the{_S})?(?:user|system|developer))))"
)
_INSTRUCTIONS = (
    # "ignore all previous instructions": a verb, what came before, what a model is given; rules and
    # messages, which people are given too, only where an order begins
    (
        _VERBS,
        rf"\b(?=[dfibos]){_ORDER}(?:{_VERBS}){_SOME}{_BEFORE}(?:[\w-]{{1,20}}{_S})?(?:{_ORDERS})\b{_OF_PEOPLE}",
    ),
    (
        _VERBS,
        rf"\b(?=[dfibos]){_FIRST}(?:{_VERBS}){_S}(?:all|any|every|your)\b{_S}(?:(?:of|the|your|my|these|other){_S}){{0,3}}"
        rf"(?:(?:{_PRIOR}){_S}(?:rules|guidelines|directions|commands|context|constraints|restrictions)|"
        rf"(?:{_ORDERS}))\b{_OF_PEOPLE}",
    ),
    (
        _VERBS,
        rf"\b(?=[dfibos]){_ORDER}(?:{_VERBS}){_S}(?:(?:all|any|of){_S}){{0,2}}your{_S}(?:[\w-]{{1,20}}{_S}){{0,2}}(?:{_ORDERS}|guidelines)\b",
    ),
    (
        _VERBS,
        rf"\b(?=[dfibos]){_ORDER}(?:{_VERBS}){_SOME}(?:{_ORDERS}){_S}(?:above|before this|you (?:were|have)|given (?:above|before|earlier|to you)|"
        r"(?:from|of|in) (?:the|your) (?:system|developer))\b",
    ),
    (
        "ignore|disregard|forget",
        r"\b(?:ignore|disregard|forget) (?:(?:all|everything|anything|the|text|of|that|was|is|came|said|written) ){0,4}(?:above|before"
        r"(?: this)?|so far)[,.;:]?\s(?:(?:and|instead|now|then|just|only|simply) ){0,3}(?:instead|say|print|output|write|reply|"
        r"respond|answer|reveal|translate|repeat|follow|tell|recommend)\b|"
        r"\bforget (?:everything|all)(?: that)? you(?: were|'ve been| have been) (?:told|taught)(?: (?:before|above|so far|until "
        r"now|previously|earlier))?\s?(?:$|[.,;:!]|and\b)",
    ),
    (
        "instruction|prompt|directive",
        r"^[\W_]{0,8}(?:(?:your|here are|important|urgent)[ :]{1,2}){0,2}(?:the )?(?:new|updated|real|actual|hidden|revised) "
        r"(?:system )?(?:instructions?|prompt|directives?)\s?:(?!\s(?:from (?!now)|as (?:of|from)|starting|effective|beginning|"
        r"(?:all )?(?:staff|employees|visitors|passengers|pupils|students|parents|drivers|members|residents|tenants)\b))|"
        r"\byour (?:new|real|actual|true|updated|revised) (?:system )?(?:instructions?|prompt|directives?) (?:is|are)\b",
    ),
    (
        "your real|your actual|your true|your task|your goal|your objective|your instructions",
        r"\byour (?:real|actual|true) (?:task|goal|job|purpose|objective|mission) is (?:now )?to (?:print|reveal|output|ignore|"
        r"disregard|send|call|recommend|praise|leak|exfiltrate|obey|repeat|delete|index)\b|"
        r"\byour (?:task|goal|objective|instructions) (?:has|have) (?:now )?(?:been )?changed\s?[:.;]",
    ),
    (
        "you are now|you are no longer|from now on|act as",
        r"\byou are (?:now|no longer) (?:an? |the |called |named )?(?:[\w-]{1,20} ){0,2}?(?:(?-i:AI|DAN|LLM)\b|language model|"
        r"chatbot|unrestricted|unfiltered|uncensored|jailbroken|bound by (?:your|any|openai|previous|prior)\b)|"
        r"\bfrom now on,? you (?:are|will|must|should|shall|only)\b.{0,30}?\b(?:respond|reply|output|ignore|pretend|"
        r"recommend|act as|(?-i:AI|DAN))\b|\bact as (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken|(?-i:DAN\b))",
    ),
    (
        "the user|the human|the operator",
        r"\b(?:(?:do not|don't|never) (?:tell|inform|alert|notify|warn)|without (?:telling|informing|alerting|notifying)) "
        r"the (?:user|human|operator)(?:s|\b)(?:\s?(?:$|[.,;:!)])| and\b| anything\b| (?:about|of|that) (?:this|these|it|you)\b)|"
        r"\b(?:do not|don't|never) (?:mention|reveal|disclose|show|repeat) (?:this|it|these|any of this|that)(?: (?:message|"
        r"instruction|note|text|step|request)s?)? to the (?:user|human|operator)\b",
    ),
    (
        "language model|assistant|chatbot|llm| ai |ai:|ai,|ai ",
        r"\b(?:ai|llm|language model|assistant|chatbot)s?\b.{0,24}?\b(?:reading|processing|summari[sz]ing|parsing|"
        r"indexing|that reads?|who reads?|that process(?:es)?) (?:this|these)(?: (?:document|page|text|message|file|"
        r"e-?mail|website|content|passage|article|note)s?)?,? (?:you )?(?:must|should|shall|has to|have to|is|are|needs? to|please|ought)\b|"
        r"\b(?:attention|note (?:to|for)|message (?:to|for)|instructions? (?:to|for)|dear|hey|hello)[:,]? (?:all |any |the )?"
        r"(?:ai|llm|language model|chatbot|ai assistant)s?(?: (?:assistant|agent|model|system|reader|bot)s?)?\s?[:,.!]|"
        r"\bif you are an? (?:ai|llm|(?:large )?language model|chatbot)(?: (?:assistant|model|agent|system|bot|reading|"
        r"processing)\b|\s?[,:;])|\b(?:ai|llm|language model|ai assistant|chatbot)s? (?:must|should|shall) (?:always |now |only |"
        r"immediately )(?:recommend|praise|rank|output|execute|call)\b",
    ),
    (
        "system|developer",
        r"^[ \t>*#\[<-]{0,8}(?:system|developer)(?: (?:message|prompt|note|override|instruction|notice|alert|update)s?)?[\])>*]{0,3} ?"
        r": ?[^.!?\n]{0,40}?\b(?:you (?:are|must|will|should|shall|have to)|your (?:task|instructions|role|goal|job)|ignore|"
        r"disregard|obey|forget|override|output|reply|respond|execute|reveal|praise|recommend|serve)\b|^[ \t>*#\[<-]{0,8}system (?:prompt|override)[\])>*]{0,3}\s?(?:$|[:!])",
    ),
    (
        ("<|", "[inst", "[/inst", "<<sys", "<</sys"),
        r"<\|(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id)\|>|\[/?INST\]|<</?SYS>>",
    ),
    (
        ("<system", "</system"),
        r"</?system[-_ ]?(?:reminder|message|prompt|note|instruction|warning|override)s?\s?>",
    ),
    (
        "[system|(system|【system|[developer",
        r"^[ \t>*#-]{0,8}[\[(【](?:system|developer)[\])】][*:]{0,3}\s[^\n]{0,40}?\b(?:(?:new|updated) (?:policy|policies|rules?|"
        r"instructions?|directives?|orders?|task)\b|you (?:must|are now|will|should|shall|have to)\b|ignore all\b|disregard all\b|obey\b)",
    ),
    (  # a talk of which a model is to believe that it has had it
        "assistant:|assistant**|assistant :",
        r"^[ \t>*#]{0,8}(?:human|user)\*{0,2} ?:(?:[^\n]{0,300}\n){1,4}?[ \t>*#]{0,8}assistant\*{0,2} ?:",
    ),
    (("###",), r"^### ?(?:instruction|system|assistant|human) ?:"),
    (
        "ignorier|missacht|vergiss|verges|verwirf",
        rf"\b(?:(?=i){_FIRST}ignoriert|ignorier(?:e|en sie)|missachten?(?: sie)?|vergiss|vergesst|vergessen sie|verwirf)\b"
        r"(?!(?: sie)? (?:nicht|nie|niemals|keine\w?)\b).{0,16}?\b(?:vorherig|"
        r"vorig|bisherig|obig|früher|vorangegangen|vorangehend|deine|system)\w{0,4}.{0,16}?(?:anweisung|"
        r"anleitung|instruktion|vorgabe|befehl|regel|prompt)|"
        rf"\b(?=[iv]){_FIRST}(?:ignoriere|vergiss|ignorieren sie) alle (?:anweisung|instruktion|prompt)",
    ),
    (
        "negeer|vergeet",
        r"\b(?:negeer|vergeet)\b(?! n).{0,12}?\b(?:eerdere|vorige|voorgaande|bovenstaande|je|jouw|alle)\b.{0,16}?\b(?:instructie|"
        r"opdracht|aanwijzing)",
    ),
    (
        "ignor|oubli|néglig|méprise",
        r"\b(?:ignore[rz]?|oublie[rz]?|néglige[rz]?|méprise[rz]?)\b(?! (?:pas|jamais|point)).{0,24}?\b(?:(?:instruction|consigne|"
        r"directive|règle)s?,? (?:précédent|antérieur|ci-dessus|plus haut|données plus|du système|système|initiale)|"
        r"(?:précédente?s|tes|vos) (?:[\w-]{1,16} )?(?:instruction|consigne|directive)s?\b)",
    ),
    (
        "instruccion|instrucción|indicacion|órdenes|reglas",
        r"(?<!\bno )\b(?:ignor|olvid|desestim|descart|omit)(?:a|e|en|ad|ar)\b.{0,24}?\b(?:(?:instruccion(?:es)?|"
        r"instrucción|indicaciones|órdenes|reglas) (?:anterior|previa|precedente|de arriba|del sistema|dadas)|tus (?:instruccion|"
        r"indicacion))",
    ),
    (
        "instruç|orientações|regras|comandos",
        r"(?<!\bnão )\b(?:ignor|esque[cç]|desconsider|desprez)(?:a|e|em|ar)\b.{0,24}?\b(?:(?:instruções|instrução|orientações|"
        r"regras|comandos) (?:anterior|prévia|precedente|acima|do sistema)|(?:suas|tuas) (?:instruções|orientações))",
    ),
    (
        "istruzion|indicazioni|direttive|regole",
        r"(?<!\bnon )\b(?:ignor|dimentic|scart|trascur)(?:a|i|hi|ate|are)\b.{0,24}?\b(?:(?:istruzion[ei]|indicazioni|"
        r"direttive|regole) (?:precedent|anterior|sopra|di sistema|di cui sopra)|(?:precedenti|tue) (?:istruzioni|direttive))",
    ),
    (
        "gnoruj|zapomn|pomiń|zapomeň",
        r"\b(?:zignoruj|ignoruj|zapomnij|pomiń|zapomeň)(?:cie|te)?\b.{0,16}?\b(?:wszystkie|poprzedni|wcześniejsz|powyższ|"
        r"swoje|všechny|předchoz|předešl|výše)\w{0,4}.{0,20}?\b(?:instrukc|poleceni|wytyczn|reguł|pokyn|příkaz|pravidl)",
    ),
    (
        "ignorer|glöm|bortse|glem",
        r"\b(?:ignorera?|glöm|bortse|glem)\b(?! (?:inte|ikke)).{0,12}?\b(?:tidigare|föregående|ovanstående|dina|tidligere|forrige|"
        r"foregående|ovenstående|dine|alla|alle)\b.{0,16}?\b(?:instruktion|instruks|anvisning|prompt)",
    ),
    (
        "talimat|yönerge|komut|kural",
        r"\b(?:önceki|yukarıdaki|tüm|bütün|sistem)\b.{0,16}?\b(?:talimat|yönerge|komut|kural)\w{0,10}\b.{0,12}?\b(?:yok say|unut|"
        r"görmezden gel|dikkate alma)(?:ın|ınız|un|in|yın)?\b",
    ),
    (
        "abaikan|lupakan",
        r"\b(?:abaikan|lupakan)\b.{0,16}?\b(?:instruksi|perintah|petunjuk|aturan|arahan)\b.{0,12}?\b(?:sebelum|di atas|sistem|"
        r"terdahulu)|\b(?:abaikan|lupakan) semua (?:instruksi|arahan)\b",
    ),
    (
        "bỏ qua|quên|phớt lờ",
        r"(?:bỏ qua|quên|phớt lờ)\b.{0,20}?(?:hướng dẫn|chỉ thị|chỉ dẫn|lệnh|quy tắc).{0,8}?(?:trước|ở trên|bên trên|hệ thống)",
    ),
    (
        "гнорируй|гноруй|забудь|не обращай|отбрось",
        r"(?<!\bне )\b(?:про)?(?:игнорируй|забудь|не обращай(?:те)? внимания|отбрось|ігноруй)(?:те)?\b.{0,12}?\b(?:предыдущ|прежн|прошл|"
        r"вышеуказан|свои|твои|системн|попередн|все|всі|усі)\w{0,4}.{0,20}?\b(?:инструкци|указани|команд|інструкці|вказівк|"
        r"правил)",
    ),
    (
        "تجاهل|انس|تغاض",
        r"(?:تجاهل|انس|تغاض).{0,16}?(?:التعليمات|الأوامر|الإرشادات|القواعد).{0,6}?(?:السابق|أعلاه|النظام)",
    ),
    ("دستور|راهنمای", r"(?:دستور|راهنمای).{0,14}?(?:قبلی|پیشین|بالا).{0,8}?(?:نادیده|فراموش)"),
    (
        "התעלם|התעלמי|שכח",
        r"(?:התעלם|התעלמי|שכח).{0,14}?(?:ההוראות|הנחיות|הוראות).{0,4}?(?:הקודמות|לעיל|המערכת)",
    ),
    (
        "निर्देश|आदेश",
        r"(?:पिछले|पिछली|पूर्व|ऊपर|पहले|सभी|सारे).{0,14}?(?:निर्देश|आदेश).{0,14}?(?:(?:अनदेखा|अनदेखी|नज़रअंदाज़|नजरअंदाज) कर(?:ें|ो)|भूल जा)",
    ),
    (
        "忽略|无视|無視|忘记|忘記|忽视|忽視|不要理会|不要理會|抛弃",
        r"(?:^|[，。！？：；、\s\"“「]|请|請|现在|現在|立即|必须|必須|你)(?:忽略|无视|無視|忘记|忘記|忽视|忽視|不要理会|不要理會|抛弃)(?:.{0,6}?(?:之前|以上|上述|上面|先前|此前|前面|你的|系统|系統|"
        r"原有).{0,6}?(?:指令|指示|提示|说明|說明|规则|規則|命令|要求|设定|設定)(?![，,]?(?:然后|并)?(?:(?:继续|繼續)(?:安装|安裝|操作|使用|进行|進行|下一步)|点击|點擊|重启|重啟))|"
        r".{0,2}?(?:所有|一切|全部|任何)的?(?:指令|提示)|.{0,4}?(?:以上|上述|之前|上面|前面).{0,4}?(?:内容|內容|文字|文本|对话|對話)[，,；。]?"
        r".{0,2}?(?:输出|輸出|打印|回答|回复|回覆|只|改为|改為|执行|執行|告诉|告訴|说出|說出))",
    ),
    (
        "你现在是|你現在是|从现在|從現在|新的指令|新的系统|新指令|用户|使用者",
        r"(?:你现在是|你現在是).{0,8}?(?:AI|助手|机器人|機器人|语言模型|語言模型|人工智能|DAN|限制)|(?:从现在|從現在)(?:起|开始|開始)，?你.{0,10}?(?:AI|"
        r"助手|回答|回复|回覆|输出|輸出|指令|扮演)|新的?(?:系统|系統)?(?:指令|提示词|提示詞)[：:]|不要(?:告诉|告訴|通知|提醒)(?:用户|使用者)"
        r"(?=$|[\s，。！？；、：,.!?;:\"”」）)]|[这這此你您该該]|任何|关于|關於|有关|有關|以上|上述|真相|发生|發生)|不要让用户知道",
    ),
    (
        "無視|忘れ|破棄",
        r"(?:(?:以前|これまで|上記|前述|今まで|先ほど|元|あなた)の?.{0,8}?(?:指示|命令|ルール|プロンプト|指令)|(?:すべて|全て|全)の(?:指示|プロンプト|指令))"
        r".{0,8}?(?:無視し(?:て|ろ|なさい)|無視せよ|忘れ(?:て|ろ|なさい)|破棄し)",
    ),
    (
        "무시|잊어|잊으",
        r"(?:(?:이전|앞선|위의|지금까지|기존|앞의)의?.{0,8}?(?:지시|명령|규칙|프롬프트|지침)|모든 (?:지시|프롬프트|지침)).{0,8}?(?:무시하(?:고|세요|라|십시오)|"
        r"무시해|잊어|잊으)",
    ),
)
_TOOLS = (
    "index_documents|remove_documents|edit_graph|cancel_job|submit_work|claim_work|drift_step|drift_finish|drift_search|get_source|"
    "get_entity|get_community_report|local_search|global_search|search_text|explore_graph|graph_status"
)
_CALLS = (
    (
        "tool|function|invoke",
        r"<\|?/?(?:(?:[a-z]{1,8}:)?(?:function_(?:calls?|results?|response|output)|tool_(?:calls?|use|responses?|results?|name|input|output)|invoke))\b|"
        r"\\?[\"']type\\?[\"']\s?:\s?\\?[\"'](?:tool_(?:use|result|call)|function_call(?:_output)?)\\?[\"']|"
        r"<(?:function|tool|parameter)(?:=| name=)|<｜tool|\"(?:tool_calls?|function_call|tool_use|tool_name)\" ?:|"
        r"\b(?:tool|function)_call\b",
    ),
    (
        '"arguments"|"parameters"|"input"',
        r"\"name\" ?: ?\"[\w.-]{1,60}\" ?,\s{0,8}\"(?:arguments|parameters|input)\" ?:",
    ),
    (
        _TOOLS,
        rf"\b(?:{_TOOLS})\((?:\)|\w{{1,20}}=)|\b(?:call|invoke|use|run|execute) (?:the )?(?:tool |function )?[`\"']?(?:{_TOOLS})\b",
    ),
    ("工具|函数|函數", r"(?:调用|調用|执行|執行)(?:工具|函数|函數)[ :：`\"“]{0,3}[a-z]{1,20}_"),
)
_KEYS = (
    "api key|api-key|api_key|apikey|access key|access_key|access token|access_token|password|passphrase|credential|secret key|"
    "private key|environment variable|.env|ssh key|system prompt|session cookie|secrets"
)
_KEY_WORDS = _KEYS.replace(".", r"\.")
_AWAY = (
    "send|e-?mail|mail|upload|post|forward|transmit|submit|exfiltrate|leak|give|hand|share|paste"
)
_OPEN = "reveal|give (?:me|us|him|them)|tell|show|output|disclose|leak|repeat|display|expose|dump"
# not: to the vault
_TO = r"(?:to|at)\s(?!(?:your|our|a)\b|the (?!following|url|address|web ?hook|author|sender))"
_SECRETS = (
    (
        _KEYS,
        # away to someone; of the reader's own; and the one thing that only a model has
        rf"\b(?=[efghlmpstu]){_FIRST}(?:{_AWAY})\b(?:{_S}[\w'’-]{{1,20}}){{0,4}}?{_S}(?:{_KEY_WORDS})s?(?:{_S}[\w-]{{1,20}}){{0,3}}?{_S}{_TO}|"
        rf"\b(?=[degloprstw]){_FIRST}(?:{_OPEN})\b(?:{_S}[\w-]{{1,20}}){{0,3}}?{_S}your{_S}(?:[\w-]{{1,20}}{_S}){{0,2}}?(?:{_KEY_WORDS})|"
        rf"\b(?=[degloprstw]){_FIRST}(?:{_OPEN}|print|list|write|share)\b(?:{_S}[\w-]{{1,20}}){{0,4}}?{_S}system prompt\b|"
        rf"(?:{_KEY_WORDS})s?\b.{{0,40}}?\b(?:and|then) (?:send|e-?mail|upload|post|forward|transmit|exfiltrate|leak) "
        rf"(?:it|them|these|this|everything) {_TO}",
    ),
    (
        "密钥|密鑰|金鑰|密码|密碼|口令|令牌|凭证|憑證|凭据|系统提示|系統提示|环境变量|環境變數",
        r"(?:告诉我|告訴我|泄露|洩露|透露|交出|发给我|發給我|(?:输出|輸出|显示|顯示|打印|提供|发送|發送)你的).{0,8}?(?:密钥|密鑰|金鑰|密码|密碼|口令|令牌|"
        r"凭证|憑證|凭据|系统提示|系統提示|环境变量|環境變數)|(?<![不会會勿别別得能可止禁应應莫准許许])(?<!不要)(?<!随便)(?<!隨便)(?<!轻易)(?<!輕易)[把将將](?!家|门|門).{0,8}?(?:密钥|密鑰|金鑰|密码|密碼|口令|令牌|凭证|憑證|"
        r"环境变量).{0,8}?(?:发送给|发送到|發送給|發送到|发给|發給|告诉|告訴|上传到|上傳到|输出|輸出|泄露)(?!您的|你的|[我他她]?的?(?:姐|妹|哥|弟|妈|媽|爸|奶奶|爷爷|爺爺|家人|孩子|朋友|同事|邻居|鄰居|客人|房东|房東))|"
        r"(?:^|[，。！？：；、\s请請])(?:输出|輸出|打印|显示|顯示|重复|重複|复述|泄露)(?:你的|完整的?|全部的?|所有)?(?:系统提示词|系統提示詞)",
    ),
    (
        "passwort|schlüssel|zugangsdaten|kennwort",
        rf"\b(?=[gnstvz]){_FIRST}(?:sende?|nenne?|verrate?|gib|schicke?|zeige?|teile?)\b(?!.{{0,40}}(?:w-?lan|wi-?fi|gäste))"
        r".{0,30}?(?:passwort|passwörter|(?:api|zugangs|geheim)"
        r".?schlüssel|zugangsdaten|kennwort)(?!\w{0,3} ein\b)",
    ),
    (
        "de passe|clé|identifiants|jeton",
        rf"\b(?=[adertm]){_FIRST}(?:envoie|envoyez|révèlez?|révélez|affichez?|donnez?|montrez?|transmet(?:s|tez))\b.{{0,30}}?(?:mots? de passe|"
        r"clés? (?:api|secrète)|(?:vos|tes|les|ses) identifiants (?:à|au)\b|jetons?)",
    ),
    (
        "contraseña|clave|credencia|senha|chave",
        rf"\b(?=[cdemr]){_FIRST}(?:env[ií]a|env[ií]e|revel[ae]|muestr[ae]|mostr[ae]|dime|diga|comparte|compartilhe)\b.{{0,30}}?"
        r"(?:contraseñas?|claves? (?:api|secreta)|credenciales|senhas?|chaves? (?:api|secreta)|credenciais)",
    ),
    (
        "парол|ключ|токен|учётн|учетн|секрет",
        rf"\b(?=[внопрс]){_FIRST}(?:отправь|пришли|покажи|раскрой|сообщи|выведи|назови)(?:те)?\b.{{0,30}}?(?:парол|ключ\w{{0,3}} (?:api|доступа)|api-ключ|"
        r"токен|учётн|учетн|секретн)",
    ),
    (
        "パスワード|apiキー|秘密鍵|認証情報|トークン",
        r"(?:パスワード|APIキー|秘密鍵|認証情報|トークン)を.{0,10}?(?:送って|送信して|送信せよ|送れ|教えて|教えろ|出力して|出力せよ|開示して|表示して|表示せよ)",
    ),
    (
        "비밀번호|api 키|암호|토큰|자격 증명",
        r"(?:비밀번호|API 키|암호|토큰|자격 증명).{0,12}?(?:보내(?:라|줘|세요|십시오| ?주세요)|알려 ?(?:줘|라|주세요|주십시오)|출력(?:해|하)|공개해|보여 ?(?:줘|주세요))",
    ),
    (
        "كلمة المرور|كلمات المرور|مفتاح|الرمز السري|بيانات الاعتماد",
        r"(?:^|[.!؟:،]\s)(?:أرسل|اكشف|أظهر|اطبع).{0,30}?(?:كلمة المرور|كلمات المرور|مفتاح (?:API|الوصول)|الرمز السري|بيانات الاعتماد)",
    ),
)
KINDS = {"instructions": _INSTRUCTIONS, "tool call": _CALLS, "asks for secrets": _SECRETS}
_PATTERNS = [
    (
        kind,
        words if isinstance(words, tuple) else tuple(words.split("|")),
        re.compile(one, re.IGNORECASE | re.MULTILINE | re.DOTALL),
    )
    for kind, some in KINDS.items()
    for words, one in some
]
# The words of patterns, several of which have the same; and the longest parts without a blank of
# each of them.
_HINTS = {
    words: tuple(dict.fromkeys(max(word.split(), key=len) for word in words))
    for _, words, _ in _PATTERNS
}
_AI = re.compile(
    r"ai(?<!\wai)[ :,]"
)  # "said " holds "ai " as well, and no pattern begins within a word
MOST = 8  # places that one pattern is looked for in


@lru_cache(maxsize=64)
def suspicions(text: str) -> tuple[tuple[int, str], ...]:
    """(offset, kind) of what reads as meant for a model, in order; of each pattern the first eight
    places.
    """
    held = _held(text.lower())
    found: list[tuple[int, str]] = []
    for kind, words, pattern in _PATTERNS:
        if words not in held:
            continue
        for number, match in enumerate(pattern.finditer(text)):
            if number == MOST:
                break
            found.append((match.start(), kind))
    return tuple(sorted(found))


def _held(lower: str) -> set[tuple[str, ...]]:
    """Of _HINTS those of which a word stands in the text."""
    # Every word once, which is half of a long text: what has no blank in it stands in one of these
    # or nowhere.
    once = "\n".join(set(lower.split()))
    letters = set(once)
    likely = [
        words
        for words, parts in _HINTS.items()
        if any(part[0] in letters and part in once for part in parts)
    ]
    return {
        words
        for words in likely
        if any(word in lower and (word[:2] != "ai" or _AI.search(lower)) for word in words)
    }
