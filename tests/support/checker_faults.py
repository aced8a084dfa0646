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
    Fault("tags are forgotten", "if stack_eqb ts seen then", "if true then"),
    Fault("an owner is not compared", "| Exactly [h], [w] => h =? w", "| Exactly [h], [w] => true"),
    Fault(
        "broadcasts are not compared",
        "| [], Exactly l => list_eqb (filter other everybody) (NSort.sort l)",
        "| [], Exactly l => true",
    ),
    Fault(
        "frames may arrive tagged",
        "| true, [], Some (m, Exactly l) =>",
        "| true, _, Some (m, Exactly l) =>",
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
        "if same_members l l' then Some o",
        "if true then Some o",
    ),
    Fault(
        "one part of a class stands for both",
        "| Some (_, o), Some (_, o') =>",
        "| Some (_, o), _ => let o' := o in",
    ),
    Fault(
        "what one source does is taken for others",
        "let m := if any_source then m else blank in",
        "",
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
