import type { Chart, Table } from '../figure.ts'
import { rounded } from '../format.ts'

/** Escapes text for HTML content and attribute values. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A chart as a table whose numbers have bars, on one scale. The thin line over a bar is the range of the rounds. */
export function chartFigure({ title, unit, by = '', series, rows }: Chart, id: string): string {
  if (rows.length === 0) return ''
  const ranged = rows.some(({ range }) => range !== undefined)
  const all = rows.flatMap(({ values, range }) => [...values, ...(range ?? [])].map((value) => value ?? 0))
  const most = Math.max(...all)
  const part = (value: number): string =>
    `${most <= 0 ? 0 : Math.max(0, Math.round((1000 * value) / most) / 10)}%`
  const bar = (value: number | undefined, [low, high]: readonly [number, number] = [0, 0]): string => {
    if (value === undefined) return ''
    const whisker = high > low ? `<i style="left:${part(low)};width:${part(high - low)}"></i>` : ''
    return `<div class="bar"><b style="width:${part(value)}"></b>${whisker}</div>`
  }
  const lines = rows.map(({ label, ours, values, range }) => {
    const cells = values.map((value, i) => {
      const drawn = bar(value, i === 0 ? range : undefined)
      return `<td class="number drawn">${rounded(value)}${drawn}</td>`
    })
    const ends = ranged ? [range?.[0], range?.[1]] : []
    const numbers = ends.map((end) => `<td class="number">${rounded(end)}</td>`)
    return `<tr class="${ours ? 'ours' : 'other'}"><th scope="row">${escapeText(label)}</th>${[...cells, ...numbers].join('')}</tr>`
  })
  const heads = [by, ...series, ...(ranged ? ['lowest round', 'highest round'] : [])]
  const caption = `${escapeText(title)} <span class="unit">${escapeText(unit)}</span>`
  return `<figure class="chart"><figcaption id="${id}">${caption}</figcaption>${scrolling(`aria-labelledby="${id}"`, heads, lines)}</figure>`
}

export function tableElement({ caption, head, rows }: Table): string {
  const lines = rows.map((row) => {
    const [name = '', ...cells] = row
    return `<tr><th scope="row">${escapeText(name)}</th>${cells.map(cell).join('')}</tr>`
  })
  return scrolling(`aria-label="${escapeText(caption)}"`, head, lines)
}

function cell(text: string): string {
  const number = /^[-\d.,× %µ]+$/.test(text) ? ' class="number"' : ''
  return `<td${number}>${escapeText(text)}</td>`
}

/** A table that a keyboard can scroll. `label`: the attribute that names it. `lines`: its rows. */
export function scrolling(label: string, head: readonly string[], lines: readonly string[]): string {
  const heads = head.map((name) => `<th scope="col">${escapeText(name)}</th>`).join('')
  return `<div class="scroll" role="region" ${label} tabindex="0"><table ${label}><thead><tr>${heads}</tr></thead><tbody>${lines.join('')}</tbody></table></div>`
}
