import { parseStoreUrl } from '../../src/config/store-fields.ts'
import { openSharedStore } from '../../src/fleet/open-store.ts'
import type { SharedStore } from '../../src/fleet/shared-store.ts'

/** Opens the shared store on a server of this machine. */
export function openStoreAt(port: number, timeout = 60_000): Promise<SharedStore> {
  const parsed = parseStoreUrl(`valkey://127.0.0.1:${port}`)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return openSharedStore(
    {
      address: parsed.value,
      prefix: 'postern',
      timeout,
      replicas: 0,
      tls: {},
    },
    { failed() {}, up() {}, down() {}, refusing() {}, accepting() {}, answered() {} },
  )
}
