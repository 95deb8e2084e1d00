import { hash } from 'node:crypto'
import type { Fields } from './fields.ts'
import type { LocalResponse } from './refusal.ts'

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escapes a text for HTML: for an element's content, or for an attribute value in double quotes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
}

const STYLE = `
:root{color-scheme:light dark}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:min(1rem,4vw);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere;color:light-dark(#15191d,#e3e7ea);background:light-dark(#f3f5f7,#0e1215)}
main{width:100%;max-width:22rem;padding:min(1.5rem,5vw);border:1px solid light-dark(#d3d9de,#2d353b);border-radius:.75rem;background:light-dark(#fff,#161b1f)}
h1{margin:0 0 1rem;font-size:1.25rem}
form{display:grid;gap:.75rem}
p{margin:0 0 1rem}
p[role]{padding:.5rem min(.75rem,3vw);border-left:.25rem solid;border-radius:.25rem;color:light-dark(#b3261e,#ff8a80)}
p[role=status]{color:light-dark(#0b57b0,#7ab7ff)}
p.small{margin:1rem 0 0;font-size:.875rem}
input,button,a{width:100%;min-height:2.75rem;padding:.5rem .75rem;border:1px solid light-dark(#7a858f,#8e99a3);border-radius:.5rem;font:inherit;color:inherit;background:transparent}
button,a{display:block;border-color:transparent;font-weight:600;text-align:center;text-decoration:none;color:light-dark(#fff,#0e1215);background:light-dark(#0b57b0,#7ab7ff);cursor:pointer}
:focus-visible{outline:.2rem solid light-dark(#0b57b0,#7ab7ff);outline-offset:.15rem}
[hidden]{display:none}
`

/** The source of the styles in a document, for `style-src` of a Content-Security-Policy. */
export const STYLE_SOURCE = `'sha256-${hash('sha256', STYLE, 'base64')}'`

/**
 * The fields of every page of the public listener. A page has no script and loads nothing from elsewhere. No other origin can show it in a
 * frame (clickjacking) or share its browsing context group. `Referrer-Policy` is not `no-referrer`, because browsers would then send
 * `Origin: null` with the form.
 */
const PUBLIC_PAGE_FIELDS: Fields = Object.entries({
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': `default-src 'none'; img-src data:; style-src ${STYLE_SOURCE}; form-action 'self'; base-uri 'none'; frame-ancestors 'self'`,
  'X-Frame-Options': 'SAMEORIGIN',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Referrer-Policy': 'same-origin',
}).flat()

/** A response with an HTML page. `more`: further fields. It is `no-store`, so it needs no `Vary`. */
export function htmlResponse(status: number, body: string, more: Fields = []): LocalResponse {
  return {
    status,
    fields: [...PUBLIC_PAGE_FIELDS, 'Content-Length', String(Buffer.byteLength(body)), ...more],
    body,
  }
}

/** The fields that describe a body. */
const ABOUT_BODY = /^(?:content-(?:type|length)|cache-control|pragma|x-content-type-options)$/i

/** The fields of a response without those that describe its body. */
export function fieldsBesideBody({ fields }: LocalResponse): Fields {
  return fields.filter((_, i) => !ABOUT_BODY.test(fields[i - (i % 2)] ?? ''))
}

interface Page {
  readonly language: string
  /** `title`, `head` (further elements of the head) and `main` are HTML: the caller escapes texts. */
  readonly title: string
  readonly head?: string
  /** The address of the icon; default: none. */
  readonly icon?: string | undefined
  readonly main: string
}

/** A complete HTML document. */
export function documentOf({ language, title, head = '', icon = 'data:,', main }: Page): string {
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="${icon}">
<title>${title}</title>${head}
<style>${STYLE}</style>
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`
}
