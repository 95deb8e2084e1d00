/** For light and dark mode, screen and print; loads no other files. */
export const STYLE = `
:root { color-scheme: light dark; --back: #fff; --raised: #f5f6f8; --ink: #1c2024; --quiet: #5b6570; --rule: #d9dde3;
  --ours: #0b62c4; --other: #98a2b0; --good: #1a6d34; --bad: #b3261e; --mark: #b3261e;
  --s0: #0b62c4; --s1: #a8480b; --s2: #1a7a4c; --s3: #7b3fa8; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171a; --raised: #1d2125; --ink: #e6e9ec; --quiet: #a3adb8; --rule: #353b42;
    --ours: #5aa9ff; --other: #6d7784; --good: #6fcf8a; --bad: #ff8a80; --mark: #ff8a80;
    --s0: #5aa9ff; --s1: #ffa45c; --s2: #5fd39a; --s3: #c79bf2; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.75rem; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 .25rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
h2 .id { color: var(--quiet); font-weight: 400; margin-right: .5rem; }
p { margin: .25rem 0 .75rem; }
a { color: var(--ours); }
.about, .unit, .legend, footer { color: var(--quiet); }
.unit { font-weight: 400; }
.unit::before { content: "· "; }
.sums { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0; padding: 0; list-style: none; }
.sums li { background: var(--raised); border: 1px solid var(--rule); border-radius: .5rem; padding: .5rem 1rem; min-width: 8rem; }
.sums b { display: block; font-size: 1.5rem; line-height: 1.2; }
dl.machine { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .9rem; margin: 1rem 0; }
dl.machine dt { color: var(--quiet); }
dl.machine dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .75rem 0; }
.scroll:focus-visible { outline: 2px solid var(--ours); }
table { border-collapse: collapse; font-size: .875rem; min-width: 100%; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { text-align: left; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; white-space: nowrap; }
td.wide { white-space: normal; min-width: 14rem; }
thead th { color: var(--quiet); font-weight: 600; }
tbody th { font-weight: 400; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.verdict { font-weight: 600; white-space: nowrap; }
.pass, .aim { color: var(--good); }
.short, .fault { color: var(--bad); }
.measured, .absent { color: var(--quiet); font-weight: 400; }
figure.chart { margin: 1.25rem 0; padding: 1rem; background: var(--raised); border: 1px solid var(--rule); border-radius: .5rem; }
figcaption { font-weight: 600; margin-bottom: .5rem; }
figure svg:not(.key) { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font-size: 12px; font-family: inherit; }
svg .tick, svg .axis { fill: var(--quiet); font-size: 11px; }
svg .label.ours { font-weight: 700; }
.grid { stroke: var(--rule); stroke-width: 1; }
.bar.ours { fill: var(--ours); }
.bar.other { fill: var(--other); }
.part1 { fill-opacity: .72; }
.part2 { fill-opacity: .45; }
.range { stroke: var(--ink); stroke-width: 1.25; fill: none; }
.mark { stroke: var(--mark); stroke-width: 2; stroke-dasharray: 5 3; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); stroke-dasharray: 7 3; }
.s2 { stroke: var(--s2); stroke-dasharray: 2 3; } .s3 { stroke: var(--s3); stroke-dasharray: 9 3 2 3; }
.dot { stroke: none; } .dot.s0 { fill: var(--s0); } .dot.s1 { fill: var(--s1); } .dot.s2 { fill: var(--s2); } .dot.s3 { fill: var(--s3); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; margin: 0 0 .5rem; padding: 0; font-size: .85rem; }
.key { width: 24px; height: 10px; margin-right: .4rem; vertical-align: middle; }
details { margin-top: .5rem; font-size: .9rem; }
summary { cursor: pointer; color: var(--quiet); }
.notes { font-size: .9rem; padding-left: 1.2rem; }
code { font: .92em ui-monospace, "DejaVu Sans Mono", monospace; }
footer { margin-top: 3rem; font-size: .85rem; }
@media print { details, .key { break-inside: avoid; } body { max-width: none; } }
`
