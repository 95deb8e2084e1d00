import { describe, expect, it } from 'vitest'
import type { ResponseRules } from '../../src/http1/response-reader.ts'
import { type NodesRead, readByNode, readResponse } from './read-response.ts'
import { fieldsText } from './request-rows.ts'

/** One behaviour of a response parser, from the same sources as the rows of `request-rows.ts`. */
export interface ResponseRow {
  /** The object of a sentence: `the sidecar refuses NAME`. */
  readonly name: string
  /** Latin-1. The connection ends after them. */
  readonly bytes: string
  /** Method of the request; default `GET`. */
  readonly asked?: 'HEAD'
  /** The reading by the strict rules: interim responses, then `status reason {fields} "body"`; or `refused`. */
  readonly reads: string
  /** The reading by the rules `auto`, which they report as sloppy, if the strict rules refuse. */
  readonly sloppy?: string
  /** The reading by the tolerant rules, if it is neither of these. */
  readonly tolerant?: string
  /** Why the strict rules read the bytes differently from llhttp: the clause, or the attack. */
  readonly departs?: string
  /** Why the tolerant rules read another body than llhttp in the lenient mode of Node. */
  readonly departsTolerantly?: string
}

function headText(status: number, reason: string, fields: readonly string[]): string {
  return [status, ...(reason === '' ? [] : [reason]), fieldsText(fields)].join(' ')
}

function responseText({ interim, head: [status, reason, fields] = [0, '', []], body }: NodesRead): string {
  const final = `${headText(status, reason, fields)} ${JSON.stringify(body)}`
  return [...interim.map(([code, itsFields]) => headText(code, '', itsFields)), final].join(', ')
}

const REFUSED = 'refused'

function sentenceOf({ name, reads, sloppy, departs }: ResponseRow): string {
  const verb =
    reads !== REFUSED ? 'reads' : sloppy === undefined ? 'refuses' : 'refuses (strict) or repairs (auto)'
  return `${verb} ${name}, ${departs === undefined ? 'as llhttp does' : 'unlike llhttp'}`
}

/** Compares the sidecar with each row, and with llhttp unless the row has a reason to differ. */
export function describeResponses(title: string, rows: readonly ResponseRow[]): void {
  describe(title, () => {
    it.each(rows.map((row) => [sentenceOf(row), row] as const))(
      'C21 C24 the sidecar %s',
      async (_what, row) => {
        const bytes = Buffer.from(row.bytes, 'latin1')
        const read = (rules: ResponseRules, pieces = [bytes]) => readResponse(pieces, row.asked, rules)
        const inBytes = Array.from(bytes, (byte) => Buffer.of(byte))
        const expected = [
          ['strict', row.reads],
          ['auto', row.sloppy ?? row.reads],
          ['tolerant', row.tolerant ?? row.sloppy ?? row.reads],
        ] as const
        for (const [rules, reads] of expected) {
          for (const found of [read(rules), read(rules, inBytes)])
            expect(found.end.startsWith('whole') ? responseText(found) : REFUSED, rules).toBe(reads)
        }
        if (row.reads !== REFUSED || row.sloppy !== undefined)
          expect(read('auto').sloppy).toBe(row.sloppy !== undefined)
        const node = await readByNode(bytes, { method: row.asked })
        const there = node === undefined ? REFUSED : responseText(node)
        if (row.departs === undefined) expect(there).toBe(row.reads)
        else expect(there, 'llhttp agrees now: remove `departs`').not.toBe(row.reads)
        const lenient = await readByNode(bytes, { method: row.asked, lenient: true })
        const tolerant = read('tolerant')
        const compares = lenient !== undefined && tolerant.end.startsWith('whole')
        expect(compares && lenient.body !== tolerant.body).toBe(row.departsTolerantly !== undefined)
      },
    )
  })
}
