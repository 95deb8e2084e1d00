import { join } from 'node:path'
import { expect } from 'vitest'
import { createPublicPaths } from '../../src/gate/classify.ts'
import { matchesAny, normalizeAddress, parseCidr } from '../../src/http/ip.ts'
import { destinationOf } from '../../src/http/overrides.ts'
import { loosePathOf } from '../../src/http/request-path.ts'
import { compileAllow } from '../../src/http/scope.ts'
import { runCases } from '../support/cases.ts'
import { requestHead } from '../support/exchange.ts'
import { bytesOf } from '../support/shown-bytes.ts'

const allows = compileAllow([{ methods: ['GET', 'HEAD'], paths: ['/status', '/api/sensors/'] }])
const findPublic = createPublicPaths(['/open', '/below/'])

/** The two parts of a text with this word between them. */
function halves(text: string, between: string): readonly [string, string] {
  const at = text.indexOf(between)
  return [text.slice(0, at), text.slice(at + between.length)]
}

/** The path of this host that a Destination names. */
function destinationIn(value: string): string {
  const target = destinationOf({
    head: requestHead({ secure: true, fields: ['Destination', value] }),
    classified: { host: 'postern.example:8443' },
    client: { peerTrusted: false, hops: 0 },
  })
  if (target === undefined || target === '') return 'no path of this host'
  return `${target}${findPublic(target) === undefined ? '' : ' (public)'}`
}

function withinRange(text: string): string {
  const [address, range] = halves(text, ' in')
  const parsed = parseCidr(range.trimStart())
  return parsed === undefined ? 'no range' : String(matchesAny(address, [parsed]))
}

const READ: Readonly<Record<string, (text: string) => string>> = {
  request: (text) => (allows(...halves(text, ' ')) ? 'allowed' : 'not allowed'),
  to: destinationIn,
  page: loosePathOf,
  address: (text) => normalizeAddress(text) ?? 'no address',
  within: withinRange,
}

runCases(join(import.meta.dirname, 'spellings.txt'), {
  given: Object.keys(READ),
  results: ['is'],
  play(given) {
    const [[kind, text = ''] = expect.fail('nothing is given')] = Object.entries(given)
    const read = READ[kind] ?? expect.fail(`${kind} is not read`)
    return { is: read(bytesOf(text).toString('latin1')) }
  },
})
