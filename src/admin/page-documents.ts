import type { IncomingMessage } from 'node:http'
import { type Answer, errorAnswer, isRead, methodNotAllowed } from './answer.ts'
import { CHALLENGE } from './page-access.ts'
import type { PageFile } from './page-files.ts'

/** `index.html`, `login.html` and what they refer to, by name. */
export type PageFiles = () => Promise<ReadonlyMap<string, PageFile>>

/**
 * On every response of the page. `Referrer-Policy` is not `no-referrer`: with that, browsers send `Origin: null` with the page's own
 * forms (Fetch, "append a request Origin header"), like a page of another site.
 */
export const PAGE_FIELDS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

/** The page itself. */
export async function indexPage(files: PageFiles): Promise<Answer> {
  const { type, body } = await documentOf(files, 'index.html')
  return { status: 200, type, body }
}

/** The login page at `/`. */
export async function loginPage(files: PageFiles): Promise<Answer> {
  const { type, body } = await documentOf(files, 'login.html')
  return { status: 401, type, body, fields: CHALLENGE }
}

/**
 * The login page as the response of `/page/login`, with a sentence on it. The references in the file are relative to `/`, which this
 * changes: the path before `/` may have a prefix that only a proxy knows.
 */
export async function failedLoginPage(
  files: PageFiles,
  status: number,
  { sentence, fields = {} }: { readonly sentence: string; readonly fields?: Answer['fields'] },
): Promise<Answer> {
  const { type, body } = await documentOf(files, 'login.html')
  const text = body
    .toString('utf8')
    .replaceAll('="page/', '="')
    .replace('<form', `<p class="message" role="alert">${sentence}</p>\n<form`)
  return { status, type, body: text, fields: { ...(status === 401 ? CHALLENGE : {}), ...fields } }
}

/** A file that a page refers to, which needs no login: it is the same for everybody. */
export async function fileAnswer(files: PageFiles, req: IncomingMessage, name: string): Promise<Answer> {
  const file = name.endsWith('.html') ? undefined : (await files()).get(name)
  if (file === undefined) return errorAnswer(404, 'not_found', 'The page has no such file.')
  if (!isRead(req)) return methodNotAllowed('GET, HEAD')
  const fields = { ETag: file.etag, 'Cache-Control': 'no-cache' }
  return req.headers['if-none-match'] === file.etag
    ? { status: 304, fields }
    : { status: 200, type: file.type, body: file.body, fields }
}

async function documentOf(files: PageFiles, name: string): Promise<PageFile> {
  const file = (await files()).get(name)
  if (file === undefined) throw new TypeError(`the page has no ${name}`)
  return file
}
