import { isToken } from '../http/fields.ts'
import type { Field } from './field.ts'
import { headerNameProblem } from './header-field.ts'
import { text } from './value-fields.ts'
import type { Parsed } from './yaml.ts'

/** The field in which requests carry the token of a session. */
export interface SentField {
  readonly name: string
  /** The text before and after the token in the value of the field. */
  readonly before: string
  readonly after: string
  /** The name of the cookie with the token, if the field is `Cookie`. */
  readonly cookie?: string
}

const FORM = 'the name of a header field, or the field such as "Authorization: Bearer $token"'

/** A name, or a name and a value with the token in it once. The value is visible ASCII, with spaces inside only. */
const WRITTEN = /^([^:]+)(?::[ \t]*(?!.*\$token.*\$token)([!-~][ -~]*)?\$token([ -~]*[!-~])?)?$/

/** The name of a field for the token, or the whole field, in which `$token` stands for it. */
export function sentField(): Field<SentField> {
  const must = `must be ${FORM}`
  return text({ type: 'the name of a header field, or a field with `$token`', must, parse })

  function parse(written: string): Parsed<SentField> {
    const [, name, before = '', after = ''] = WRITTEN.exec(written) ?? []
    if (name === undefined) return { problem: must }
    const problem = headerNameProblem(name)
    if (problem !== undefined) return { problem }
    if (name.toLowerCase() !== 'cookie') return { value: { name, before, after } }
    const cookie = before.slice(0, -1)
    if (before !== `${cookie}=` || !isToken(cookie) || after !== '')
      return { problem: 'must name the cookie, such as "Cookie: NAME=$token"' }
    return { value: { name, before, after, cookie } }
  }
}
