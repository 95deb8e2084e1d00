import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'

/** A file that a browser gets, as it is. */
export interface PageFile {
  readonly type: string
  readonly body: Buffer
  readonly etag: string
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const FOLDER = new URL('../page/', import.meta.url)

/** The chart library's own files, by the names that index.html uses. */
const CHARTS: Readonly<Record<string, string>> = {
  'uplot.js': import.meta.resolve('uplot/dist/uPlot.iife.min.js'),
  'uplot.css': import.meta.resolve('uplot/dist/uPlot.min.css'),
}

/**
 * Reads the files of the live page, by name: `index.html`, `login.html` and what they load. In the executable,
 * `deploy/build/bundle.ts` puts their contents in place of this module.
 */
export function loadPageFiles(): ReadonlyMap<string, PageFile> {
  const own = readdirSync(FOLDER)
    .filter((name) => TYPES[extname(name)] !== undefined)
    .map((name) => [name, new URL(name, FOLDER)] as const)
  const charts = Object.entries(CHARTS).map(([name, url]) => [name, new URL(url)] as const)
  return new Map([...own, ...charts].map(([name, url]) => [name, pageFile(name, readFileSync(url))]))
}

function pageFile(name: string, body: Buffer): PageFile {
  const digest = createHash('sha256').update(body).digest('base64url').slice(0, 22)
  return { type: TYPES[extname(name)] ?? 'application/octet-stream', body, etag: `"${digest}"` }
}
