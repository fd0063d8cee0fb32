"""Hindi words of the built-in corpus `languages`, as tables; keys are lexemes of data/synthetic/language/lexicon.py.

A noun has a gender and four forms: direct and oblique, singular and plural. Plural forms follow from the ending
(McGregor, Outline of Hindi Grammar, 1995, ch. 1); "=" marks a noun in -ा that does not change in the singular.
"""

from unicodedata import normalize

MASCULINE, FEMININE = "m", "f"

NOUNS = """
man आदमी m;      woman औरत f;       child बच्चा m;      boy लड़का m;       girl लड़की f;     teacher अध्यापक m
doctor डॉक्टर m;  student छात्र m;     neighbor पड़ोसी m;   friend दोस्त m;     guest मेहमान m;   farmer किसान m
artist कलाकार m;  king =राजा m;      queen रानी f;       sister बहन f;      brother भाई m;    dog कुत्ता m
cat बिल्ली f;      horse घोड़ा m;     bird चिड़िया f;     mouse चूहा m;      cow गाय f;       bear भालू m
lion शेर m;       book किताब f;      letter चिट्ठी f;     picture तस्वीर f;   key चाबी f;      cup प्याला m
bag थैला m;       clock घड़ी f;       knife चाकू m;      hat टोपी f;       newspaper अख़बार m
bottle बोतल f;    ball गेंद f;        ring अँगूठी f;     flower फूल m;     box डिब्बा m;     apple सेब m
egg अंडा m;       potato आलू m;      carrot गाजर f;     pear नाशपाती f;   table मेज़ f;     chair कुर्सी f
door दरवाज़ा m;    window खिड़की f;    car गाड़ी f;       bicycle साइकिल f;  boat नाव f;      train रेलगाड़ी f
house घर m;      school स्कूल m;     church गिरजाघर m;  museum संग्रहालय m; garden बाग़ m;    forest जंगल m
village गाँव m;   city शहर m;        kitchen रसोई f
"""
# Adjectives in -ा agree with their noun, others never change.
ADJECTIVES = """
new नया; small छोटा; big बड़ा; black काला; white सफ़ेद; red लाल; blue नीला; green हरा; expensive महँगा; cheap सस्ता
happy ख़ुश; sad उदास; sick बीमार; rich अमीर; clever चालाक; hungry भूखा; famous प्रसिद्ध; beautiful सुंदर; heavy भारी
fresh ताज़ा; sweet मीठा; young जवान; tired थका हुआ
"""
# Verbs: what stands before the verb proper, its stem, its perfective participle. "ने": the subject of its past takes ने.
VERBS = """
see | देख देखा ने;     find | पा पाया ने;     buy | ख़रीद ख़रीदा ने;    sell | बेच बेचा ने;    look for | ढूँढ ढूँढा ने
eat | खा खाया ने;     write | लिख लिखा ने;   carry | उठा उठाया ने;    lose | खो खोया ने;     open | खोल खोला ने
repair | ठीक कर किया ने;    clean | साफ़ कर किया ने;    close | बंद कर किया ने;    call | बुला बुलाया ने
sleep | सो सोया;      dance | नाच नाचा;     laugh | हँस हँसा;        swim | तैर तैरा;      arrive | पहुँच पहुँचा
wake up | जाग जागा;   return | लौट लौटा;    play | खेल खेला;        work | काम कर किया ने;  wait | इंतज़ार कर किया ने
"""


def split_cells(table: str) -> list[str]:
    """The entries of a table, in Unicode's normal form C, as all text of a corpus is."""
    return [cell.strip() for cell in normalize("NFC", table).replace("\n", ";").split(";") if cell.strip()]
