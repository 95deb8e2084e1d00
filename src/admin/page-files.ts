import type { PageFile } from './page-documents.ts'

/** Interim: the branch of the page has the real one. */
export function loadPageFiles(): ReadonlyMap<string, PageFile> {
  const file = (body: string): PageFile => ({
    type: 'text/html; charset=utf-8',
    body: Buffer.from(body),
    etag: '"0"',
  })
  return new Map([
    ['index.html', file('<!doctype html><title>Postern</title>')],
    [
      'login.html',
      file('<!doctype html><title>Postern</title><form method="post" action="page/login"></form>'),
    ],
  ])
}
