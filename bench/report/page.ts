import { type Check, type MeasuredFigure, type Result, type Table, verdictOf } from '../figure.ts'
import { CHECK_HEAD, checkCells, clockTime, VERDICTS } from '../format.ts'
import { STYLE } from './style.ts'

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
  return scrolling('All thresholds', ['figure', 'what', ...CHECK_HEAD, 'verdict'], rows)
}

/** Escapes a sentence and turns backticks into `<code>`. */
function prose(text: string): string {
  return escapeText(text).replace(/`([^`]*)`/g, '<code>$1</code>')
}

function checkRow(check: Check, name: string): string {
  const verdict = verdictOf(check)
  const [value, rounds, threshold] = checkCells(check).map(escapeText)
  return `<tr><th scope="row">${name}</th><td class="wide">${prose(check.what)}</td><td class="number">${value}</td><td class="number">${rounds}</td><td>${threshold}</td><td class="verdict ${verdict}">${VERDICTS[verdict]}</td></tr>`
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

/** Escapes text for HTML content and attribute values. */
function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A table with its caption. The rows of Postern are bold. */
function tableElement({ caption, head, rows }: Table): string {
  const lines = rows.map((row) => {
    const [name = '', ...cells] = row
    const kind = name.startsWith('postern') ? ' class="ours"' : ''
    return `<tr${kind}><th scope="row">${escapeText(name)}</th>${cells.map(cell).join('')}</tr>`
  })
  return `<h3>${escapeText(caption)}</h3>${scrolling(caption, head, lines)}`
}

function cell(text: string): string {
  const number = /^[-\d.,× %µ]+$/.test(text) ? ' class="number"' : ''
  return `<td${number}>${escapeText(text)}</td>`
}

/** A table that a keyboard can scroll, with its name and its rows. */
function scrolling(name: string, head: readonly string[], lines: readonly string[]): string {
  const label = `aria-label="${escapeText(name)}"`
  const heads = head.map((column) => `<th scope="col">${escapeText(column)}</th>`).join('')
  return `<div class="scroll" role="region" ${label} tabindex="0"><table ${label}><thead><tr>${heads}</tr></thead><tbody>${lines.join('')}</tbody></table></div>`
}
