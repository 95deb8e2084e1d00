import { expect, it } from 'vitest'
import { WINDOW_TYPES, type WindowType } from '../../src/http/admission.ts'
import { logIn, NAVIGATION, startWithLogin } from '../browser/browsing.ts'
import type { TestSidecar, YamlPart } from '../support/sidecar.ts'

interface Case {
  /** The configuration in which one request is all that the window takes. */
  readonly config: YamlPart
  /** Sends requests of this window until one is refused, and returns its status. */
  exceed(sidecar: TestSidecar): Promise<number>
}

/** A new limit does not compile without a case, and its case fails until the gate counts it. */
const CASES: Readonly<Record<WindowType, Case>> = {
  api: {
    config: { limits: { api: { requests: 1 } } },
    async exceed(sidecar) {
      const token = await sidecar.token()
      await sidecar.request({ token })
      return (await sidecar.request({ token })).status
    },
  },
  oauth: {
    config: { limits: { oauth: { requests: 1 } } },
    async exceed(sidecar) {
      await sidecar.grant()
      return (await sidecar.postToken({ grant_type: 'password', password: 'wrong' })).status
    },
  },
  browser: {
    config: { browser: { login: 'on' } },
    async exceed(sidecar) {
      const fields = [...NAVIGATION, 'Cookie', await logIn(sidecar)]
      for (let i = 0; i < 600; i++) await sidecar.request({ fields })
      return (await sidecar.request({ fields })).status
    },
  },
}

it.each(WINDOW_TYPES)(
  'H237 the limit %s is counted by the gate, in the metrics and on the page',
  async (type) => {
    const { config, exceed } = CASES[type]
    const sidecar = await startWithLogin({ transport: 'tls', config })
    expect(await exceed(sidecar)).toBe(429)
    expect(await sidecar.metric('postern_rate_limited_total', { endpoint: type })).toBe(1)
    expect(sidecar.overview.condition().limits[type]).toMatchObject({ usedUpCount: 1 })
  },
)
