import { describe, expect, it } from 'vitest'
import { dottedKeys } from '../../src/config/known-keys.ts'
import { adviceOn, nearestKey } from '../../src/config/nearest.ts'

describe('the nearest known key', () => {
  it.each([
    ['limits.api.request', 'did you mean limits.api.requests?'],
    ['trusted_proxies', 'did you mean listen.trusted_proxies?'],
    ['capacity', 'did you mean tokens.capacity?'],
    ['listen.trustedProxies', 'did you mean listen.trusted_proxies?'],
    ['upstream.max-in-flight', 'did you mean upstream.max_in_flight?'],
    ['maxInFlight', 'did you mean upstream.max_in_flight?'],
    ['stateDir', 'did you mean state_dir?'],
    ['limit', 'did you mean limits?'],
    ['upstream.ulr', 'did you mean upstream.url?'],
    ['log.lvl', 'did you mean log.level?'],
    ['listne', 'did you mean listen?'],
    ['adm', 'did you mean admin?'],
    ['lmts', 'did you mean limits?'],
    ['listi', 'did you mean listen?'],
    ['meory', 'did you mean listen.memory?'],
    ['certs', 'did you mean listen.tls.cert?'],
  ])('to %s is advised', (unknown, advice) => {
    expect(adviceOn(nearestKey(unknown, dottedKeys()))).toBe(advice)
  })

  it.each(['completely_different', 'port', 'listen.xyz', 'upstream.port', 'state', 'lim'])(
    'to %s is not named: none is similar',
    (unknown) => {
      expect(adviceOn(nearestKey(unknown, dottedKeys()))).toBe('deploy/configuration.md lists the known ones')
    },
  )

  it('of every known key is the key itself', () => {
    for (const key of dottedKeys()) expect(nearestKey(key, dottedKeys())).toBe(key)
  })
})
