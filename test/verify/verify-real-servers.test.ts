import { describe, expect, it } from 'vitest'
import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import { brokenPromises } from './real/broken-promises.ts'
import { startExpress } from './real/express.ts'
import { startFastify } from './real/fastify.ts'
import { EXPRESS, FASTIFY, ROTATING_EXPRESS } from './real/known-departures.ts'

describe('postern verify', () => {
  it.each([EXPRESS, ROTATING_EXPRESS, FASTIFY])(
    'finds what $name breaks, and nothing else',
    async ({ start, limits, departures }) => {
      const broken = await brokenPromises(await start(limits), limits)
      expect(broken.map(({ id }) => id).sort()).toEqual(departures.map(({ promise }) => promise).sort())
    },
  )

  it('finds only that a login fails, where it needs a client_id', async () => {
    const { limits } = EXPRESS
    const broken = await brokenPromises(await startExpress({ limits, clientRequired: true }), limits)
    expect(broken.map(({ id }) => id)).toEqual(['C4'])
  })

  it('shows no part of a token in what it found', async () => {
    const [spelling] = await brokenPromises(await startFastify(), DOCUMENTED_LIMITS, { only: ['C1'] })
    expect(spelling?.departures.map(({ came }) => came).join()).toMatch(/"refresh_token":"\*\*\*"/)
  })
})
