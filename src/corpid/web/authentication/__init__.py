"""Pages of the sign-in.

`endpoints` has one GET that shows the current page, one POST for all forms (the table `STEPS`), and the exits: leave,
and sent on. It loads the sign-in and submits a form to the flows of `flows.authentication`; each POST is answered with
a redirect, and what was rejected is kept for the page (D73). It also has the pages of a sign-in that is over or belongs
to another browser, by what the flows raised, and sign-out. `pages` builds the view of each step.
"""
