import type { Server } from 'node:net'
import { listen } from '../system/listen.ts'
import type { ListenAddress } from '../system/listen-address.ts'
import { SetupError } from '../system/setup-error.ts'

export interface Addresses {
  readonly public: string
  readonly admin: string | null
}

/** Opens the listeners of a sidecar, once. */
export interface Listeners {
  /** Rejects with a `SetupError` if an address cannot be used, or after `endOpening`. A second call has the same result. */
  open(): Promise<Addresses>
  /** The addresses that are open, as text. */
  readonly listening: readonly string[]
  /** No listener opens from now on. Resolves when none is opening: closing it earlier would leave it open. */
  endOpening(): Promise<void>
}

export interface ListenersDependencies {
  readonly public: Server
  readonly admin: Server
  /** Called when both listen. */
  readonly onOpen: (addresses: Addresses) => void
}

/** The sections of the configuration. */
interface ListenerSettings {
  readonly listen: { readonly address: ListenAddress; readonly reusePort: boolean; readonly tls: unknown }
  readonly admin: { readonly address: ListenAddress | 'off' }
}

export function createListeners(
  { listen: { address, reusePort, tls }, admin }: ListenerSettings,
  servers: ListenersDependencies,
): Listeners {
  const listening: string[] = []
  let opening: Promise<Addresses> | undefined
  let ended = false

  function refuseAtEnd(): void {
    if (ended) throw new SetupError('the sidecar was stopped, so it does not listen', { exitCode: 1 })
  }

  async function openBoth(): Promise<Addresses> {
    if (admin.address !== 'off') listening.push(await listen(servers.admin, admin.address, 'admin.address'))
    const adminAt = admin.address === 'off' ? null : `http://${listening[0]}`
    refuseAtEnd()
    const bound = await listen(servers.public, address, 'listen.address', reusePort)
    listening.push(bound)
    refuseAtEnd()
    const addresses = { public: `${tls === 'off' ? 'http' : 'https'}://${bound}`, admin: adminAt }
    servers.onOpen(addresses)
    return addresses
  }

  return {
    listening,
    async open() {
      refuseAtEnd()
      opening ??= openBoth()
      return opening
    },
    async endOpening() {
      ended = true
      await opening?.catch(() => {})
    },
  }
}
