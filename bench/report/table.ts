import type { Table } from '../figure.ts'

/** Escapes text for HTML content and attribute values. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A table with its caption. The rows of Postern are bold. */
export function tableElement({ caption, head, rows }: Table): string {
  const lines = rows.map((row) => {
    const [name = '', ...cells] = row
    const kind = name.startsWith('postern') ? ' class="ours"' : ''
    return `<tr${kind}><th scope="row">${escapeText(name)}</th>${cells.map(cell).join('')}</tr>`
  })
  return `<h3>${escapeText(caption)}</h3>${scrolling(`aria-label="${escapeText(caption)}"`, head, lines)}`
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
