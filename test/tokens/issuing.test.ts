import { expect, it } from 'vitest'
import { createLogOn } from '../../src/record/log.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import type { HandedOut } from '../../src/tokens/handout.ts'
import { createIssuing, type PasswordAgreement } from '../../src/tokens/issuing.ts'
import type { IssuedTokens } from '../../src/tokens/mint.ts'

const ISSUED: IssuedTokens = { grant: 'g', accessToken: 'a', refreshToken: 'r', expiresIn: 1 }
const HANDED_OUT: HandedOut = { grant: 'g', accessToken: 'a', expiresAt: 1 }
const CLIENT = { address: '192.0.2.1', key: '192.0.2.1', peerTrusted: false, hops: 0, admitted: true }

/**
 * The password changes `changes` times while it is verified. `epochs` later epochs begin meanwhile, and the sidecar hears of each; of `stale`
 * others it does not hear.
 */
function issuing({ changes = 0, epochs = 0, stale = 0, agreed = true, once = false, answered = false } = {}) {
  const calls: string[] = []
  let generation = 0
  let epoch = 0
  const present: PasswordAgreement['present'] = async () =>
    agreed ? { kind: 'agreed', generation, epoch: String(epoch) } : { kind: 'differs' }
  const agreement: PasswordAgreement = {
    present,
    beforeLogin: present,
    async settle() {
      epoch += 1
    },
  }
  function issue<T>(tokens: T, under: string): T | 'stale' {
    calls.push(`issue under ${under}`)
    return epoch < stale ? 'stale' : tokens
  }
  const { logIn, handOut } = createIssuing({
    log: createLogOn('info', { write() {} }),
    metrics: createMetrics({ version: '0', node: '0' }),
    hasName: () => true,
    agreement,
    password: {
      get generation() {
        return generation
      },
      follows: true,
      has: () => true,
      async verify(password) {
        calls.push('verify')
        const result = password === 'p' ? 'right' : 'wrong'
        const verified = { result, generation, name: '', ...(once ? { once } : {}) } as const
        if (generation < changes) generation += 1
        if (epoch < epochs) epoch += 1
        return verified
      },
    },
    tokens: {
      issue: (_client, _grantType, _name, under = '') => issue(ISSUED, under),
      handOut: (_handout, under = '') => issue(HANDED_OUT, under),
    },
  })
  return {
    calls,
    logIn: (password = 'p') => logIn(password, { client: CLIENT, answered, onEnd() {} }, 'password'),
    handOut: () => handOut({ name: '', label: '', lifetime: 1 }),
  }
}

it('C8 a login whose password changes while it is verified begins anew, right or wrong', async () => {
  const { logIn, calls } = issuing({ changes: 2 })
  expect(await logIn()).toEqual(ISSUED)
  expect(calls).toEqual(['verify', 'verify', 'verify', 'issue under 0'])
  const wrong = issuing({ changes: 1 })
  expect(await wrong.logIn('q')).toBe('wrong')
  expect(wrong.calls).toEqual(['verify', 'verify'])
})

it('C8 H360 a password that may be verified only once gets no token if passwords change meanwhile, and a wrong one stays wrong', async () => {
  const { logIn, calls } = issuing({ changes: 1, once: true })
  expect(await logIn()).toBe('unchecked')
  expect(calls).toEqual(['verify'])
  const wrong = issuing({ changes: 1, once: true })
  expect(await wrong.logIn('q')).toBe('wrong')
  expect(wrong.calls).toEqual(['verify'])
})

it('H209 a login whose request was answered meanwhile issues no token', async () => {
  const { logIn, calls } = issuing({ answered: true })
  expect(await logIn()).toBe('overloaded')
  expect(calls).toEqual(['verify'])
})

it('C8 a login or handout under an earlier epoch begins anew under the later one', async () => {
  const heard = issuing({ epochs: 1 })
  expect(await heard.logIn()).toEqual(ISSUED)
  expect(heard.calls).toEqual(['verify', 'verify', 'issue under 1'])
  const login = issuing({ stale: 1 })
  expect(await login.logIn()).toEqual(ISSUED)
  expect(login.calls).toEqual(['verify', 'issue under 0', 'verify', 'issue under 1'])
  const handout = issuing({ stale: 1 })
  expect(await handout.handOut()).toEqual(HANDED_OUT)
  expect(handout.calls).toEqual(['issue under 0', 'issue under 1'])
})

it('C8 a password that changes at each of four attempts gets no token', async () => {
  const changing = issuing({ changes: 9 })
  expect(await changing.logIn()).toBe('unavailable')
  expect(changing.calls).toEqual(['verify', 'verify', 'verify', 'verify'])
  expect(await issuing({ stale: 9 }).handOut()).toBe('unavailable')
})

it('C8 without an agreement on the password, none is verified and no token is issued', async () => {
  const { logIn, handOut, calls } = issuing({ agreed: false })
  expect(await Promise.all([logIn(), logIn('q'), handOut()])).toEqual(Array(3).fill('unavailable'))
  expect(calls).toEqual([])
})
