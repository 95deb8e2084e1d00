import { describe, expect, it } from 'vitest'
import { startRedis } from '../support/redis.ts'
import { startSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'

/** The `store` and `operation` of each series that is 0. */
function unfailed(metrics: string): string[] {
  const samples = metrics.matchAll(/^postern_store_errors_total\{store="(\w+)",operation="(\w+)"\} 0$/gm)
  return [...samples].map(([, store, operation]) => `${store} ${operation}`).sort()
}

describe('H165 every failure of a store moves a series that was 0, so increase() sees the first one', () => {
  it('of the token file and the password', async () => {
    const sidecar = await startSidecar({ config: { tokens: { store: 'file' } } })
    expect(unfailed(await sidecar.metrics())).toEqual([
      'file close',
      'file expire',
      'file flush',
      'file issue',
      'file meta',
      'file open',
      'file revoke',
      'file set_aside',
      'password absent',
      'password read',
    ])
  })

  it('of the password alone, if tokens are in memory only', async () => {
    const sidecar = await startSidecar({ config: { tokens: { store: 'memory' } } })
    expect(unfailed(await sidecar.metrics())).toEqual(['password absent', 'password read'])
  })

  it('of the shared store', async () => {
    needs('redis-server')
    const server = await startRedis()
    const sidecar = await startSidecar({ config: { tokens: { store: `valkey://${server.at}` } } })
    expect(unfailed(await sidecar.metrics())).toEqual([
      'password absent',
      'password read',
      'shared connect',
      'shared count',
      'shared follow',
      'shared issue',
      'shared list',
      'shared lookup',
      'shared lost',
      'shared places',
      'shared refresh',
      'shared replicate',
      'shared revoke',
      'shared state',
      'shared upkeep',
    ])
  })
})
