/** For light and dark mode, screen and print; loads no other files. */
export const STYLE = `
:root { color-scheme: light dark; --back: #fff; --raised: #f5f6f8; --ink: #1c2024; --quiet: #5b6570; --rule: #d9dde3;
  --ours: #0b62c4; --good: #1a6d34; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171a; --raised: #1d2125; --ink: #e6e9ec; --quiet: #a3adb8; --rule: #353b42;
    --ours: #5aa9ff; --good: #6fcf8a; --bad: #ff8a80; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.75rem; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 .25rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
h2 .id { color: var(--quiet); font-weight: 400; margin-right: .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 0; }
p { margin: .25rem 0 .75rem; }
a { color: var(--ours); }
.about, footer { color: var(--quiet); }
.sums { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0; padding: 0; list-style: none; }
.sums li { background: var(--raised); border: 1px solid var(--rule); border-radius: .5rem; padding: .5rem 1rem; min-width: 8rem; }
.sums b { display: block; font-size: 1.5rem; line-height: 1.2; }
dl.machine { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .9rem; margin: 1rem 0; }
dl.machine dt { color: var(--quiet); }
dl.machine dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: .75rem 0; }
.scroll:focus-visible { outline: 2px solid var(--ours); }
table { border-collapse: collapse; font-size: .875rem; min-width: 100%; }
th, td { text-align: left; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; white-space: nowrap; }
td.wide { white-space: normal; min-width: 14rem; }
thead th { color: var(--quiet); font-weight: 600; }
tbody th { font-weight: 400; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.verdict { font-weight: 600; white-space: nowrap; }
.pass, .aim { color: var(--good); }
.short, .fault { color: var(--bad); }
.measured, .absent { color: var(--quiet); font-weight: 400; }
.ours th { font-weight: 700; }
.notes { font-size: .9rem; padding-left: 1.2rem; }
code { font: .92em ui-monospace, "DejaVu Sans Mono", monospace; }
footer { margin-top: 3rem; font-size: .85rem; }
@media print { body { max-width: none; } }
`
