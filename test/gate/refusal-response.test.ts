import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parseYaml } from '../../src/config/yaml.ts'
import { refusalResponse } from '../../src/gate/refusal-response.ts'
import { type Fields, fieldLines } from '../../src/http/fields.ts'
import type { Refusal } from '../../src/http/refusal.ts'
import { runCases } from '../support/cases.ts'

/** How many entries of the fields describe the body. */
const OF_THE_BODY = 10

/** The refusal that a case shows in YAML. The cases prove that it is one: each gets its own status. */
function refusalIn(text: string): Refusal {
  const parsed = parseYaml(text)
  return 'value' in parsed ? (parsed.value as unknown as Refusal) : expect.fail(parsed.problem)
}

runCases(join(import.meta.dirname, 'refusals.txt'), {
  given: ['refusal'],
  results: ['http', 'contract', 'error', 'says', 'fields'],
  play({ refusal = '' }) {
    const responseBy = (statusCodes: 'http' | 'contract') =>
      refusalResponse(refusalIn(refusal), { statusCodes, realm: 'r' })
    const [http, contract] = [responseBy('http'), responseBy('contract')]
    const { error, error_description, ...more } = JSON.parse(http.body)
    expect([more, contract.body]).toEqual([{}, http.body])
    const [fields, others] = [http, contract].map((response) =>
      fieldLines(response.fields.slice(OF_THE_BODY)).trimEnd().replaceAll('\r\n', '\n'),
    )
    return {
      ...{ http: String(http.status), contract: String(contract.status), error, says: error_description },
      fields:
        fields === '' ? undefined : `${fields}${others === fields ? '' : '\nwith the precise statuses only'}`,
    }
  },
})

it('C18 with the precise statuses a challenge tells a client that its login may not make the request', () => {
  const fieldsOf = (statusCodes: 'http' | 'contract'): Fields =>
    refusalResponse({ kind: 'insufficient-scope' }, { statusCodes, realm: 'a "b"' }).fields
  expect(fieldsOf('http').slice(OF_THE_BODY)).toEqual([
    'WWW-Authenticate',
    'Bearer realm="a \\"b\\"", error="insufficient_scope"',
  ])
  expect(fieldsOf('contract').slice(OF_THE_BODY)).toEqual([])
  for (const [statusCodes, status] of [
    ['http', 403],
    ['contract', 400],
  ] as const)
    expect(refusalResponse({ kind: 'insufficient-scope' }, { statusCodes, realm: 'r' }).status).toBe(status)
})

it.each(['Heizhaus Süd', 'ボイラー室', 'a "quoted" \\ name', '"', '\\', "it's 12 € 🔥"])(
  'H220 C11 the realm %j stands in the challenge as a quoted string in UTF-8',
  (realm) => {
    for (const [cause, error] of [
      ['missing', ''],
      ['unknown', ', error="invalid_token"'],
    ] as const) {
      const { fields } = refusalResponse({ kind: 'unauthorized', cause }, { statusCodes: 'contract', realm })
      const value = fields[fields.indexOf('WWW-Authenticate') + 1] ?? ''
      // RFC 9110 §5.6.4.
      const [, quoted = '', rest] = /^Bearer realm="((?:[^"\\]|\\.)*)"(.*)$/.exec(value) ?? []
      expect(Buffer.from(quoted.replaceAll(/\\(.)/gs, '$1'), 'latin1').toString()).toBe(realm)
      expect(rest).toBe(error)
    }
  },
)
