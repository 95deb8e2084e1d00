import type { ResponseRules } from '../../src/http1/response-reader.ts'
import { type Read, readAnswer, readByNode } from './responses-read.ts'

/** How the sidecar's reader by its three rules, and Node's, compare on some bytes. */
export interface AnswerComparison {
  /** Whether the strict rules take the bytes for an answer. */
  readonly strict: boolean
  /** Whether only the sloppy ones do. */
  readonly sloppy: boolean
  readonly disagreements: readonly string[]
}

const RULES: readonly ResponseRules[] = ['strict', 'auto', 'tolerant']

/** Where Node reads otherwise than the strict rules; the rows of `response-*-as-llhttp.test.ts` have the reasons. */
const DEPARTURES: readonly RegExp[] = [
  // An interim answer of HTTP/1.0, or one that says close, is the last one to Node.
  /^HTTP\/1\.0 1/m,
  /^HTTP\/1\.1 1(?:(?!\r\n\r\n).)*\r\nconnection:[^\r]*close/ims,
  // Node does not know a coding with a tab behind it.
  /^transfer-encoding[ \t]*:[^\r\n]*\t/im,
  // Node refuses a coding without a value also where there is no body, and an empty one behind chunked ends it nowhere.
  /^transfer-encoding[ \t]*:(?:[^\r\n]*,)?\s*$/im,
  // Node refuses a length among the trailers, which are dropped here.
  /\r\n0+(?:;[^\r]*)?\r\n.*content-length/is,
]

/** Where Node, as lenient as it goes, finds another body than the tolerant rules. */
const LENIENT_DEPARTURES: readonly RegExp[] = [
  ...DEPARTURES,
  // A CR without LF ends a line or a head to Node.
  /\r(?!\n)/,
  // Behind chunked, identity makes the body endless to Node.
  /identity/i,
  // A control character becomes a space here, and part of the coding there.
  /^transfer-encoding[ \t]*:[^\r\n]*[^\r\n\t -~\x80-\xff]/im,
]

/**
 * Compares what the sidecar's reader makes of an answer in these pieces, behind which the connection ends. The strict rules take
 * nothing that Node does not take likewise, `auto` reads what they take as they do and the rest as the tolerant ones, the
 * tolerant ones never find another body than Node where it is lenient, and cuts make no difference to any of them.
 */
export async function compareAnswers(pieces: readonly Buffer[], method: string): Promise<AnswerComparison> {
  const bytes = Buffer.concat(pieces)
  const full = pieces.filter(({ length }) => length > 0)
  const [strict, auto, tolerant] = RULES.map((rules) => readAnswer([bytes], method, rules)) as [
    Read,
    Read,
    Read,
  ] // three rules
  const disagreements: string[] = []
  const hold = (what: string, one: unknown, other: unknown): void => {
    const [left, right] = [JSON.stringify(one), JSON.stringify(other)]
    if (left !== right) disagreements.push(`${what}: ${left} and ${right}`)
  }
  for (const [i, read] of [strict, auto, tolerant].entries()) {
    hold(`cuts, ${RULES[i]}`, withoutRest(read), withoutRest(readAnswer(full, method, RULES[i])))
  }
  const node = await readByNode(bytes, { method })
  const text = bytes.toString('latin1')
  const departs = (departures: readonly RegExp[]): boolean => departures.some((each) => each.test(text))
  // What stands behind an answer is no part of it here, and breaks the connection there.
  if (strict.end === 'whole' && !departs(DEPARTURES)) {
    const { interim, head, body } = strict
    hold('strict beside Node', { interim, head, body }, node)
  }
  if (strict.end !== 'malformed') hold('auto beside strict', auto, strict)
  else if (auto.sloppy && strict.head === undefined && strict.interim.length === 0)
    hold('auto beside tolerant', auto, { ...tolerant, sloppy: true })
  const lenient = await readByNode(bytes, { method, lenient: true })
  if (
    tolerant.end === 'whole' &&
    lenient !== undefined &&
    hasPlainFields(text) &&
    !departs(LENIENT_DEPARTURES)
  )
    hold(
      'tolerant beside lenient Node',
      [tolerant.head?.[0], tolerant.body],
      [lenient.head?.[0], lenient.body],
    )
  return {
    strict: strict.end === 'whole',
    sloppy: strict.end === 'malformed' && auto.end === 'whole',
    disagreements,
  }
}

const FIELD = /^[!#$%&'*+.^_`|~\w-]+[ \t]*:/

/** Whether each line of each head is a field: about folded lines and those that are no field, lenient Node has its own ideas. */
function hasPlainFields(text: string): boolean {
  const heads = text
    .replace(/^[\r\n]+/, '')
    .split(/^HTTP\/.*$/im)
    .slice(1)
  return heads.every((head) => {
    const [fields = ''] = head.replace(/^\r*\n/, '').split(/(?:^|\n)\r*\n/, 1)
    return fields.split(/\r*\n/).every((line) => line === '' || FIELD.test(line))
  })
}

/** What stands behind an answer may come too late to be seen. */
function withoutRest(read: Read): Read {
  return { ...read, end: read.end.replace(', with more behind it', '') }
}
