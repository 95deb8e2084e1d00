import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect } from 'vitest'

/** What a program prints, as one document with a section for each title: `vitest run --update=all FILE` writes its file anew. */
interface Golden {
  /** Keeps what a test has seen. */
  readonly put: (title: string, text: string) => void
  /**
   * The last test of a file: the document is that of the file. Of these titles, a section that no test of this run has put, because a program is missing,
   * is taken from there; default: those that were put.
   */
  readonly expectSame: (titles?: readonly string[]) => Promise<void>
}

export function golden(file: string): Golden {
  const seen = new Map<string, string>()
  return {
    put(title, text) {
      expect([...seen.keys()], 'each section has a title of its own').not.toContain(title)
      seen.set(title, steady(text))
    },
    async expectSame(titles = [...seen.keys()]) {
      const known = sectionsIn(file)
      const sections = titles.map(
        (title) => `== ${title}\n${seen.get(title) ?? known.get(title) ?? 'not seen yet\n'}`,
      )
      const head = `What the program prints. --update=all writes ${basename(file)} anew: read what has changed.\n`
      await expect([head, ...sections].join('\n')).toMatchFileSnapshot(file)
    },
  }
}

function sectionsIn(file: string): ReadonlyMap<string, string> {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const sections = text.split(/^(?=== )/m).slice(1)
  return new Map(
    sections.map((section) => {
      const end = section.indexOf('\n')
      return [section.slice('== '.length, end), `${section.slice(end + 1).trimEnd()}\n`]
    }),
  )
}

/** What differs from run to run, and from machine to machine, and what stands for it. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/(?:\/[\w.-]+)+\/postern-test-\w+/g, 'DIR'],
  [/\b(127\.\d\.\d\.\d|localhost|\[::1?\]|0\.0\.0\.0|sport = ):\d{4,5}\b/g, '$1:PORT'],
  [/sha256\/[\w+/]{43}=/g, 'sha256/PIN'],
  [/\b(?:[0-9A-F]{2}:){31}[0-9A-F]{2}\b/g, 'FINGERPRINT'],
  [/\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?/g, 'DATE'],
  [/\b(Redis|Valkey) \d[\d.]*/g, '$1 N'],
  [/\d+ bytes from curl, \d+ from Chromium/g, 'N bytes from curl, N from Chromium'],
  [/\bgrant [0-9a-f]{16,}/g, 'grant ID'],
  [/\b\d+(?:\.\d+)? ms\b/g, 'N ms'],
  [/(; ).+ has [\d.]+ [MG]iB/g, '$1WHAT has N MiB'],
  [/a share of [\d.]+ [MG]iB, which .+ has/g, 'a share of N MiB, which WHAT has'],
]

function steady(text: string): string {
  return VARYING.reduce((shown, [what, name]) => shown.replace(what, name), text)
}
