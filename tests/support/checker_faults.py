"""Faults of the checker by which it accepts more: with each of them the proof must fail."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A text of ``Checker.v`` that occurs once, and what replaces it."""

    name: str
    old: str
    new: str


FAULTS = (
    Fault("a rank may stay equal", "(rank rk from <? next) &&", "(rank rk from <=? next) &&"),
    Fault(
        "no upper bound", "(rank rk from <? next) && (next <=? bound rk)", "(rank rk from <? next)"
    ),
    Fault("no rank", "(rank rk from <? next) && (next <=? bound rk)", "(next <=? bound rk)"),
    Fault("what may be lost is delivered", " && negb (delivery && may_fail fab c)", ""),
    Fault(
        "only the first version of a switch counts",
        "collect with_version (rules c).",
        "collect with_version (firstn 1 (rules c)).",
    ),
    Fault(
        "ports that are down send",
        "(resolved fab at_switch (fst v))",
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
        "      | Unknown => in_level more meta v p d s\n",
    ),
    Fault(
        "a rule for some frames is one for all",
        "then (if N.ldiff (snd p) (snd cube) =? 0 then Yes else Unknown)",
        "then Yes",
    ),
    Fault("tags are forgotten", "if stack_eqb ts seen && fits sources s", "if fits sources s"),
    Fault(
        "what one source does is taken for others",
        "if stack_eqb ts seen && fits sources s",
        "if stack_eqb ts seen",
    ),
    Fault(
        "what a later switch tests of sources is forgotten",
        "let k := (N.lor bits bits', o) in Some (remember m c ts s k, k)",
        "let k := (bits, o) in Some (remember m c ts s k, k)",
    ),
    Fault(
        "what this switch tests of sources is forgotten",
        "match arrive c d (s, bits) ts with",
        "match arrive c d (s, N.ones 48) ts with",
    ),
    Fault(
        "one part of a class is taken for the other",
        "let go value part := follow fuel (half value d bit) (fst part) s (snd part) c ts in",
        "let go value part := follow fuel (half value d bit) (fst part) s (snd one) c ts in",
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
    Fault("hosts may have one number", "ascending everybody\n  && ", ""),
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
        "| true, [], Some (m, (bits, Exactly l)) =>",
        "| true, _, Some (m, (bits, Exactly l)) =>",
    ),
    Fault("exceptions are not covered", "&& exceptions_follow classes", ""),
    Fault("addresses are not covered", "&& cover 48 (map fst classes)", ""),
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
    Fault("the priority of a VLAN is not matched", "if fits (r_pcp r) p then", "if true then"),
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
