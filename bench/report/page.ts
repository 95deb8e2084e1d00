import { boundOf, type Check, type MeasuredFigure, type Result, verdictOf } from '../figure.ts'
import { clockTime, rangeText, rounded, VERDICTS } from '../format.ts'
import { STYLE } from './style.ts'
import { escapeText, scrolling, tableElement } from './table.ts'

/** The report as one self-contained HTML file. */
export function renderPage(result: Result): string {
  const title = `Postern bench, ${result.at.slice(0, 10)}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>Postern, measured</h1>
${result.quick ? '<p><strong>A quick run: one short round of each figure. It shows that the bench works; the figures are not reliable.</strong></p>' : ''}
${sums(result)}
${machine(result)}
</header>
<main>
${overview(result.figures)}
${result.figures.map(section).join('\n')}
</main>
<footer><p>× is a ratio to another program in the same run on the same core. A figure is the median of
${result.rounds} rounds of ${result.seconds} s, in which all programs took turns.
The JSON file beside this page holds the numbers; bench/README.md describes the method.</p></footer>
</body>
</html>
`
}

function sums({ figures }: Result): string {
  const verdicts = figures.flatMap(({ checks }) => checks.map(verdictOf))
  const count = (...wanted: string[]): number => verdicts.filter((verdict) => wanted.includes(verdict)).length
  const faults = figures.reduce((sum, figure) => sum + figure.faults.length, 0)
  const tiles = [
    ['pass', count('pass', 'aim'), 'thresholds reached'],
    ['short', count('short'), 'thresholds missed'],
    ['fault', faults, 'faults'],
  ] as const
  const items = tiles.map(
    ([kind, number, what]) => `<li><b class="${number > 0 ? kind : ''}">${number}</b>${what}</li>`,
  )
  return `<ul class="sums">${items.join('')}</ul>`
}

function machine(result: Result): string {
  const { machine: on, device, tools, pinned, took, loadAfter } = result
  const facts = [
    ['Taken', `${result.at}, in ${clockTime(took)} minutes`],
    ['Machine', `${on.cores} × ${on.processor}, ${on.memory}, ${on.kernel}`],
    ['Load average', `${on.loadAverage} before, ${loadAfter} after`],
    ['Postern', `${on.commit}, ${result.program}, Node ${on.node}`],
    ['Device', device],
    ['Load', tools.join(', ')],
    ['Cores', pinned ? 'the proxy on one, device and load on another' : 'not pinned'],
  ] as const
  const lines = facts.map(([name, value]) => `<dt>${name}</dt><dd>${escapeText(value)}</dd>`)
  return `<dl class="machine">${lines.join('')}</dl>`
}

function overview(figures: readonly MeasuredFigure[]): string {
  const rows = figures.flatMap((figure) =>
    figure.checks.map((check) => checkRow(check, `<a href="#${figure.id}">${escapeText(check.id)}</a>`)),
  )
  if (rows.length === 0) return ''
  return scrolling(
    'aria-label="All thresholds"',
    ['figure', 'what', 'value', 'rounds', 'threshold', 'verdict'],
    rows,
  )
}

/** Escapes a sentence and turns backticks into `<code>`. */
function prose(text: string): string {
  return escapeText(text).replace(/`([^`]*)`/g, '<code>$1</code>')
}

function checkRow(check: Check, name: string): string {
  const verdict = verdictOf(check)
  const value = check.value === undefined ? '-' : `${rounded(check.value)} ${check.unit}`
  return `<tr><th scope="row">${name}</th><td class="wide">${prose(check.what)}</td><td class="number">${escapeText(value)}</td><td class="number">${rangeText(check.range)}</td><td>${escapeText(boundOf(check))}</td><td class="verdict ${verdict}">${VERDICTS[verdict]}</td></tr>`
}

function section(figure: MeasuredFigure): string {
  const { id, title, about, tables, notes, faults, took } = figure
  const list = [
    ...faults.map((fault) => `<li class="fault">${escapeText(fault)}</li>`),
    ...notes.map((note) => `<li>${prose(note)}</li>`),
  ]
  return `<section aria-labelledby="${id}">
<h2 id="${id}"><span class="id">${id}</span>${escapeText(title)}</h2>
<p class="about">${prose(about)} (${clockTime(took)})</p>
${tables
  .filter(({ rows }) => rows.length > 0)
  .map(tableElement)
  .join('\n')}
${list.length === 0 ? '' : `<ul class="notes">${list.join('')}</ul>`}
</section>`
}
