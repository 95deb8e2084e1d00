import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { escapeHtml } from '../http/html.ts'

export interface PageFile {
  readonly type: string
  readonly body: Buffer
  readonly etag: string
}

export type PageFiles = () => Promise<ReadonlyMap<string, PageFile>>

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const FOLDER = new URL('../page/', import.meta.url)
const ALERTS = new URL('../../docs/alerts.md', import.meta.url)

/**
 * Reads the files of the live page, by name: `index.html`, the files that it loads, and `alerts`. In the executable,
 * `deploy/build/bundle.ts` replaces this module by the contents of the files.
 */
export function loadPageFiles(): ReadonlyMap<string, PageFile> {
  const files = readdirSync(FOLDER)
    .filter((name) => TYPES[extname(name)] !== undefined)
    .map((name) => [name, pageFile(extname(name), readFileSync(new URL(name, FOLDER)))] as const)
  const alerts = Buffer.from(alertsPage(readFileSync(ALERTS, 'utf8')))
  return new Map([...files, ['alerts', pageFile('.html', alerts)]])
}

function pageFile(extension: string, body: Buffer): PageFile {
  const digest = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  return { type: TYPES[extension] ?? 'application/octet-stream', body, etag: `"${digest}"` }
}

/** Converts docs/alerts.md to HTML: headings with the anchors to which alarms link, paragraphs, `code` and **strong** words. */
function alertsPage(markdown: string): string {
  const blocks = escapeHtml(markdown)
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '<code>$1</code>')
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(
      /(\n)?\*\*(.+?)\*\*/g,
      (_, line, text) => `${line === undefined ? '' : '<br>\n'}<strong>${text}</strong>`,
    )
    .split('\n\n')
    .map((block) => {
      const [, level, title] = /^(#+) (.+)/.exec(block) ?? []
      if (level === undefined || title === undefined) return `<p>${block}</p>`
      return `<h${level.length} id="${title.toLowerCase()}">${title}</h${level.length}>`
    })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Alerts of Postern</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="style.css">
<body class="alerts"><main>
${blocks.join('\n')}
</main></body>
</html>
`
}
