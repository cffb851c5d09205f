"""The survey room: everything a participant sees.

Pages (HTML; a visit is known by its cookie `visit`, and every page sends a visitor on to the stage they are at):

    GET  /survey?PROLIFIC_PID=…&STUDY_ID=…&SESSION_ID=…   arrive (Prolific, a panel or an invitation: the whole query is
                                                          given to the platform) -> 303 to the visit's stage, cookie set
    GET  /survey/invitation/{code}    arrive by invitation link
    GET  /survey                      with a cookie: on to the stage; without: where to type a resume code
    POST /survey/resume               form: code            -> 303, cookie set
    GET  /survey/guide                POST /survey/guide    -> 303
    GET  /survey/check                POST /survey/check    form: one number per question id -> 303
    GET  /survey/consent              POST /survey/consent  form: decision=agree|decline, adult=yes, agreed=yes -> 303
    GET  /survey/choose               POST /survey/choose   form: task (a number; only where participants pick) -> 303
    GET  /survey/task                 the evaluation page
    GET  /survey/done                 code or redirect; can be reloaded
    GET  /survey/withdraw             POST /survey/withdraw form: sure=yes -> 303
    GET  /survey/language/{language}  en or ko; remembered

Interface of the evaluation page (JSON; errors are {"error": {"type", "message", …}} with a 4xx status):

    GET  /survey/items                -> {"survey": 1, "sequence": 17, "items": [{"number", "id", "instruction",
                                         "pictures": {"source": id, "A": id, "B": id},
                                         "asked": [{"slot", "question", "title", "text", "labels": […]}],
                                         "answers": [{"slot", "question", "value"}]}]}
    GET  /survey/pictures/{id}        -> image/jpeg
    POST /survey/answers              {"item", "slot", "question", "value", "sequence", "milliseconds"}
                                      -> {"stored": highest sequence kept for this answer}
    POST /survey/submit               -> {"next": "/survey/done"}
                                      or 409 {"error": {"type": "incomplete", "items": […]}}
"""

from __future__ import annotations
