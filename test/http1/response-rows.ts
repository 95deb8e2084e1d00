import { describe, expect, it } from 'vitest'
import type { ResponseRules } from '../../src/http1/response-reader.ts'
import { fieldsInWords } from './request-rows.ts'
import { type NodesRead, readAnswer, readByNode } from './responses-read.ts'

/** One behaviour of a parser of responses, from the same lists as those of `request-rows.ts`. */
export interface ResponseRow {
  readonly name: string
  /** Latin-1. The connection ends behind them. */
  readonly bytes: string
  /** `GET` unless given. */
  readonly asked?: 'HEAD'
  /** What the strict rules read: `status reason {fields} "body"`, with interim ones in front, or `refused`. */
  readonly reads: string
  /** What the rules `auto` read, and tell that they do, where the strict ones refuse. */
  readonly sloppy?: string
  /** What the tolerant rules read, where that is neither of these. */
  readonly tolerant?: string
  /** Why llhttp reads the bytes otherwise than the strict rules: the clause, or the attack. */
  readonly departs?: string
  /** Why llhttp, as lenient as Node makes it, reads another body than the tolerant rules. */
  readonly departsTolerantly?: string
}

function answerInWords(status: number, reason: string, fields: readonly string[]): string {
  return [status, ...(reason === '' ? [] : [reason]), fieldsInWords(fields)].join(' ')
}

function inWords({ interim, head: [status, reason, fields] = [0, '', []], body }: NodesRead): string {
  const final = `${answerInWords(status, reason, fields)} ${JSON.stringify(body)}`
  return [...interim.map(([code, its]) => answerInWords(code, '', its)), final].join(', ')
}

const REFUSED = 'refused'

/** Holds the sidecar's reader to what each row says, and to llhttp, unless the row says why it departs from it. */
export function describeResponses(title: string, rows: readonly ResponseRow[]): void {
  describe(title, () => {
    it.each(rows.map((row) => [row.name, row] as const))('C21 C24 %s', async (_name, row) => {
      const bytes = Buffer.from(row.bytes, 'latin1')
      const read = (rules: ResponseRules, pieces = [bytes]) => readAnswer(pieces, row.asked, rules)
      const inBytes = Array.from(bytes, (byte) => Buffer.of(byte))
      const expected = [
        ['strict', row.reads],
        ['auto', row.sloppy ?? row.reads],
        ['tolerant', row.tolerant ?? row.sloppy ?? row.reads],
      ] as const
      for (const [rules, reads] of expected) {
        for (const found of [read(rules), read(rules, inBytes)])
          expect(found.end.startsWith('whole') ? inWords(found) : REFUSED, rules).toBe(reads)
      }
      if (row.reads !== REFUSED || row.sloppy !== undefined)
        expect(read('auto').sloppy).toBe(row.sloppy !== undefined)
      const node = await readByNode(bytes, { method: row.asked })
      const there = node === undefined ? REFUSED : inWords(node)
      if (row.departs === undefined) expect(there).toBe(row.reads)
      else expect(there, 'llhttp agrees: the row departs no longer').not.toBe(row.reads)
      const lenient = await readByNode(bytes, { method: row.asked, lenient: true })
      const tolerant = read('tolerant')
      const compares = lenient !== undefined && tolerant.end.startsWith('whole')
      expect(compares && lenient.body !== tolerant.body).toBe(row.departsTolerantly !== undefined)
    })
  })
}
