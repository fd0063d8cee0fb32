"""Names of languages in English, by their codes of ISO 639."""

_NAMES = """
af:Afrikaans am:Amharic ar:Arabic az:Azerbaijani be:Belarusian bg:Bulgarian bn:Bengali br:Breton bs:Bosnian ca:Catalan
cs:Czech cy:Welsh da:Danish de:German el:Greek en:English eo:Esperanto es:Spanish et:Estonian eu:Basque fa:Persian
fi:Finnish fr:French ga:Irish gl:Galician gu:Gujarati ha:Hausa he:Hebrew hi:Hindi hr:Croatian hu:Hungarian hy:Armenian
id:Indonesian is:Icelandic it:Italian ja:Japanese jv:Javanese ka:Georgian kk:Kazakh km:Khmer kn:Kannada ko:Korean
ku:Kurdish ky:Kyrgyz la:Latin lb:Luxembourgish lo:Lao lt:Lithuanian lv:Latvian mg:Malagasy mk:Macedonian ml:Malayalam
mn:Mongolian mr:Marathi ms:Malay mt:Maltese my:Burmese ne:Nepali nl:Dutch nn:Nynorsk no:Norwegian oc:Occitan or:Odia
pa:Punjabi pl:Polish ps:Pashto pt:Portuguese ro:Romanian ru:Russian sd:Sindhi si:Sinhala sk:Slovak sl:Slovene so:Somali
sq:Albanian sr:Serbian su:Sundanese sv:Swedish sw:Swahili ta:Tamil te:Telugu tg:Tajik th:Thai tk:Turkmen tl:Tagalog
tr:Turkish tt:Tatar ug:Uyghur uk:Ukrainian ur:Urdu uz:Uzbek vi:Vietnamese wo:Wolof xh:Xhosa yi:Yiddish yo:Yoruba
zh:Chinese zu:Zulu und:unknown
"""
LANGUAGE_NAMES = dict(pair.split(":") for pair in _NAMES.split())


def language_name(code: str) -> str:
    """The name of a language, with its script if the code has one; its code where the name is not known."""
    base, _, script = code.partition("-")
    name = LANGUAGE_NAMES.get(base)
    return code if name is None else f"{name} ({script})" if script else name
