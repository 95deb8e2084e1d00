import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { shippedArguments } from '../build/shipped.ts'
import { prepareSite } from './serve.ts'

it('Under the permissions of the shipped unit, a SIGTERM during the restarts ends the sidecar', async () => {
  const elsewhere = await prepareSite({
    command: () => [process.execPath, ...shippedArguments({ configuration: '/nowhere', state: '/nowhere' })],
  })
  for (let after = 0; after < 200; after += 20) {
    const launched = elsewhere.launch({ env: { NODE_COMPILE_CACHE: '', NODE_OPTIONS: '' } })
    await delay(after) // The moment of the signal is what is tested.
    launched.signal('SIGTERM')
    const { code, signal } = await launched.exit
    expect(code === 0 || signal === 'SIGTERM').toBe(true)
  }
})
