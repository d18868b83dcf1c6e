"""The owner's console: pages on this machine on which a person sees what is asked, and decides.

`users` knows who may sign in, `sessions` who is signed in, `guard` which requests are heard at all. `inbox`
describes the questions that wait in the words of `privada.report.wording`, `application` is the pages and
`hosting` starts and stops them with the service. No page shows a row or an exact statistic: the console
reads envelopes, questions and the ledger, and never opens rows.
"""
