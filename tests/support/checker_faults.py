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
    Fault(
        "rules of one priority may differ",
        "Yes => if no_other r more port meta d s ts then Hit r else Unclear",
        "Yes => Hit r",
    ),
    Fault(
        "a rule for some frames is one for none",
        "      | Unknown => Unclear\n",
        "      | Unknown => in_level more port meta d s ts\n",
    ),
    Fault(
        "a rule for some frames is one for all",
        "then (if N.ldiff (snd p) (snd cube) =? 0 then Yes else Unknown)",
        "then Yes",
    ),
    Fault("tags are forgotten", "if stack_eqb ts seen then", "if true then"),
    Fault(
        "receivers are not compared",
        "| [w] => (w =? h) || match to with [x] => x =? w | _ => false end",
        "| [w] => true",
    ),
    Fault(
        "broadcasts are not compared",
        "then list_eqb (NSort.sort (filter (fun r => negb (r =? h)) (hosts fab))) (NSort.sort to)",
        "then true",
    ),
    Fault(
        "frames may arrive tagged",
        "    | (ToHost h, []) :: more =>",
        "    | (ToHost h, _) :: more =>",
    ),
    Fault("exceptions are not covered", "&& exceptions_follow classes", ""),
    Fault("addresses are not covered", "&& cover 48 (map fst classes)", ""),
    Fault(
        "half of the addresses are not covered",
        "divided fuel bits (N.setbit decided bit) (filter (side false) cubes)\n          && ",
        "",
    ),
    Fault(
        "a class may have several hosts",
        "    | _ => false\n    end\n    && (from_hosts",
        "    | _ => true\n    end\n    && (from_hosts",
    ),
    Fault(
        "a class of a host may have other addresses",
        "[_] => (snd (fst d) =? exact) && negb (in_class d (broadcast fab))",
        "[_] => negb (in_class d (broadcast fab))",
    ),
    Fault(
        "what one source does is taken for others",
        "let m := if any_source then m else Memo.empty _ in",
        "",
    ),
    Fault("a table may send backwards", "if Nat.ltb t t' then", "if true then"),
    Fault(
        "the metadata are not written",
        "handle fuel sw port d s t' (written (r_write r) meta) ts'",
        "handle fuel sw port d s t' meta ts'",
    ),
    Fault(
        "the priority of a VLAN is not matched", "if fits (r_pcp r) (pcp ts) then", "if true then"
    ),
    Fault("copies of a later table are lost", "Some (out ++ out')", "Some out'"),
    Fault(
        "the second of two copies is not followed",
        "match follow_all go from m more with\n"
        "              | None => None | Some (m, (k', to')) => "
        "Some (m, (1 + k + k', to ++ to'))\n"
        "              end",
        "Some (m, (1 + k, to))",
    ),
)
