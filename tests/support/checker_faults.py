"""Faults of the checker by which it accepts more: with each of them the proof must fail."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A text of ``Checker.v`` that occurs once, and what replaces it."""

    name: str
    old: str
    new: str


FAULTS = (
    Fault("a rank may stay equal", "(from <? next) &&", "(from <=? next) &&"),
    Fault("no upper bound", "(from <? next) && (next <=? bound rk)", "(from <? next)"),
    Fault("no rank", "(from <? next) && (next <=? bound rk)", "(next <=? bound rk)"),
    Fault("what may be lost is delivered", " && negb (delivery && may_fail fab c)", ""),
    Fault(
        "only the first version of a switch counts",
        "collect with_version (rules c).",
        "collect with_version (firstn 1 (rules c)).",
    ),
    Fault(
        "ports that are down send",
        "(resolved_seen at_switch (fst v))",
        "(fun c => (leaving fab at_switch (fst c), snd c))",
    ),
    Fault(
        "receivers are not compared",
        "negb delivery || receives everybody d owners h o",
        "true",
    ),
    Fault(
        "rules of one priority may differ",
        "Known (if existsb (does_as r) hits then hits else r :: hits)",
        "Known [r]",
    ),
    Fault(
        "a rule for some frames is one for none",
        "      | Unknown => undecided r d\n",
        "      | Unknown => in_level more meta v p d x\n",
    ),
    Fault(
        "a rule for some frames is one for all",
        "then (if N.ldiff (snd p) (snd cube) =? 0 then Yes else Unknown)",
        "then Yes",
    ),
    Fault("tags are forgotten", "if view_eqb ts seen && fits chosen x", "if fits chosen x"),
    Fault(
        "what one source does is taken for others",
        "if view_eqb ts seen && fits chosen x",
        "if view_eqb ts seen",
    ),
    Fault(
        "what a later switch tests of sources is forgotten",
        "let k := (N.lor bits bits', o) in Some (remember m c ts x k, k)",
        "let k := (bits, o) in Some (remember m c ts x k, k)",
    ),
    Fault(
        "what this switch tests of sources is forgotten",
        "match arrive c d (x, bits) ts with",
        "match arrive c d (x, N.ones 62) ts with",
    ),
    Fault(
        "one part of a class is taken for the other",
        "let go value part := follow fuel (half value d bit) (fst part) x (snd part) c ts in",
        "let go value part := follow fuel (half value d bit) (fst part) x (snd one) c ts in",
    ),
    Fault(
        "parts by another bit are taken for those by this one",
        "| (by_bit, both) :: more => if bit =? by_bit then Some both else parts_by bit more",
        "| (_, both) :: _ => Some both",
    ),
    Fault(
        "hosts are lost where ranges meet",
        "if (snd r =? first) &&",
        "if (snd r <=? first) &&",
    ),
    Fault(
        "another key is taken for the one that a map has",
        "| One only value => if key =? only then Some value else None",
        "| One only value => Some value",
    ),
    Fault("hosts may have one number", "ascending everybody\n    && ", ""),
    Fault(
        "an owner is not compared",
        "| Exactly [r], [w] => pattern_eqb r (w, N.succ w)\n",
        "| Exactly [r], [w] => true\n",
    ),
    Fault(
        "broadcasts are not compared",
        "| [], Exactly l => patterns_eqb (together (just h) l) everybody",
        "| [], Exactly l => true",
    ),
    Fault(
        "frames may arrive tagged",
        "| true, Bottom, Some (m, (bits, Exactly l)) =>",
        "| true, _, Some (m, (bits, Exactly l)) =>",
    ),
    Fault("exceptions are not covered", "&& exceptions_follow classes", ""),
    Fault("addresses are not covered", "\n  && cover 48 (map fst classes)", ""),
    Fault(
        "half of the addresses are not covered",
        "divided fuel bits (N.setbit decided bit) (filter (side false) cubes)\n          && ",
        "",
    ),
    Fault(
        "different outcomes of two parts are one",
        "if patterns_eqb l l' then Some o",
        "if true then Some o",
    ),
    Fault(
        "one part of a class stands for both",
        "match go false zero, go true one with\n                | Some (m0,",
        "match go false zero, go false zero with\n                | Some (m0,",
    ),
    Fault(
        "one part of what a host sends stands for both",
        "match go false zero, go true one with\n            | Some m0, Some m1 =>",
        "match go false zero, go false zero with\n            | Some m0, Some m1 =>",
    ),
    Fault("a table may send backwards", "if Nat.ltb at_table next\n", "if true\n"),
    Fault("the metadata are not written", "next (written w meta) ts'", "next meta ts'"),
    Fault(
        "the priority of a VLAN is not matched",
        "match fits_cube (r_pcp r) p with",
        "match Yes with",
    ),
    Fault(
        "tags that are forgotten are none",
        "match ts with Tag v p _ => Tag v p More",
        "match ts with Tag v p _ => Tag v p Bottom",
    ),
    Fault(
        "the priority that a host chooses is 0",
        "| _, None => fold_right N.max 0 (map of_priority priorities)",
        "| _, None => of_priority 0",
    ),
    Fault(
        "only one VLAN of those that a host chooses counts",
        "let more := N.ldiff bits (snd x) in\n        if more =? 0 then Some m",
        "let more := N.ldiff bits (snd x) in\n        if true then Some m",
    ),
    Fault(
        "a rule that may send counts as one that drops",
        "match fit r with No => false | _ => negb (drops r) end",
        "match fit r with Yes => negb (drops r) | _ => false end",
    ),
    Fault(
        "a rule that may match hides those below",
        "if forallb r_more hits then",
        "if match hits with [] => true | _ => false end then",
    ),
    Fault(
        "in the first table a rule that may match hides those below",
        "match fit r with Yes => negb (r_more r) | _ => false end",
        "match fit r with Yes => true | _ => false end",
    ),
    Fault(
        "a rule that may match stands for one that does",
        " && Bool.eqb (r_more a) (r_more b)",
        "",
    ),
    Fault(
        "only half of what a host chooses is admitted",
        "admitted fuel' c ts (side false x more) ++ ",
        "",
    ),
    Fault(
        "a bit of the VLAN is fixed that a host chooses",
        "(N.setbit (fst x) 60, N.setbit (snd x) 60)",
        "(N.setbit (fst x) 60, N.setbit (N.setbit (snd x) 60) 50)",
    ),
    Fault("copies of a table are lost", "Known (map (app out) outs)", "Known outs"),
    Fault(
        "only the first of several choices counts",
        "Known a => match collect f l with Known b => Known (a ++ b) | other => other end",
        "Known a => Known a",
    ),
    Fault(
        "rules of other ports count as missing",
        "map (filter (fun r => fits (r_port r) port)) t",
        "map (filter (fun r => fits (r_port r) (port + 1))) t",
    ),
)
