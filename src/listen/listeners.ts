import type { Server } from 'node:net'
import type { Clock } from '../system/clock.ts'
import { listen, mayComeLater } from '../system/listen.ts'
import { formatAddress, type LateAddress, type ListenAddress } from '../system/listen-address.ts'
import { SetupError } from '../system/setup-error.ts'

export interface Addresses {
  readonly public: string
  /** Null if the admin listener is off, or if this machine does not have its address yet. */
  readonly admin: string | null
  /** Absent if the port that redirects is off, or if this machine does not have its address yet. */
  readonly redirect?: string
}

interface ListenersDependencies {
  readonly public: Server
  readonly redirect: Server
  readonly admin: Server
  /** Called when the public listener is open, and again if another listener opens later. */
  readonly onOpen: (addresses: Addresses) => void
  /** Called once for each address that this machine does not have yet. Without it, such an address ends the start with an error. */
  readonly onLate?: ((late: LateAddress, error: SetupError) => void) | undefined
  readonly clock: Pick<Clock, 'pause'>
}

/** The keys of the addresses. */
const KEYS = ['admin.address', 'listen.redirect', 'listen.address'] as const

type Key = (typeof KEYS)[number]

/** The parts of the configuration about listeners. */
interface ListenerSettings {
  readonly listen: {
    readonly address: ListenAddress
    readonly tls: unknown
    readonly redirect: ListenAddress | 'off'
  }
  readonly admin: { readonly address: ListenAddress | 'off'; readonly tls: 'off' | 'on' }
}

/** The pause (ms) between two attempts to listen on an address that this machine does not have yet. */
const AGAIN = 1_000

/** A listener after its first attempt: it is open, or waits for its address. */
interface Opening {
  /** Resolves with the bound address when the listener is open. */
  readonly opened: Promise<string>
}

/**
 * Opens the listeners of a sidecar, once. DHCP or a VPN may assign an address after the start. With `onLate`, the sidecar tries such an
 * address until the machine has it. The public listener does not wait for the addresses of the others.
 */
export function createListeners(
  { listen: { address, tls, redirect }, admin }: ListenerSettings,
  { onLate, clock, ...servers }: ListenersDependencies,
) {
  /** The addresses that are open, by their keys. */
  const bound = new Map<Key, string>()
  const waiting: LateAddress[] = []
  const waits = new AbortController()
  let opening: Promise<Addresses> | undefined
  let ended = false

  function refuseAtEnd(): void {
    if (ended) throw new SetupError('the sidecar was stopped, so it does not listen', { exitCode: 1 })
  }

  /** Makes the first attempt for an address. `tryOnce` listens, and resolves with the address that the kernel bound. */
  async function begin(key: Key, at: ListenAddress, tryOnce: () => Promise<string>): Promise<Opening> {
    try {
      return { opened: Promise.resolve(await opened(key, tryOnce)) }
    } catch (error) {
      if (onLate === undefined || !mayComeLater(error, at)) throw error
      const late = { key, address: formatAddress(at) }
      waiting.push(late)
      onLate(late, error)
      return { opened: again(key, late, at, tryOnce) }
    }
  }

  async function opened(key: Key, tryOnce: () => Promise<string>): Promise<string> {
    const at = await tryOnce()
    bound.set(key, at)
    refuseAtEnd()
    return at
  }

  async function again(
    key: Key,
    late: LateAddress,
    at: ListenAddress,
    tryOnce: () => Promise<string>,
  ): Promise<string> {
    for (;;) {
      await clock.pause(AGAIN, waits.signal)
      refuseAtEnd()
      try {
        const found = await opened(key, tryOnce)
        waiting.splice(waiting.indexOf(late), 1)
        return found
      } catch (error) {
        if (!mayComeLater(error, at)) throw error
      }
    }
  }

  async function openAll(): Promise<Addresses> {
    let others: Omit<Addresses, 'public'> = { admin: null }
    let publicAt: string | undefined
    function tell(): void {
      if (publicAt !== undefined) servers.onOpen({ public: publicAt, ...others })
    }
    const openings: Promise<void>[] = []
    /** Opens a listener for clients. */
    function open(key: Key, at: ListenAddress, server: Server, onOpen: (at: string) => void): void {
      const begun = begin(key, at, () => listen(server, at, key))
      const opening = begun.then(({ opened }) => opened).then(onOpen)
      openings.push(opening.then(tell))
    }
    if (admin.address !== 'off') {
      const at = admin.address
      const begun = await begin('admin.address', at, () => listen(servers.admin, at, 'admin.address'))
      openings.push(
        begun.opened.then((opened) => {
          others = { ...others, admin: `${admin.tls === 'on' ? 'https' : 'http'}://${opened}` }
          tell()
        }),
      )
    }
    refuseAtEnd()
    if (redirect !== 'off') {
      open('listen.redirect', redirect, servers.redirect, (opened) => {
        others = { ...others, redirect: `http://${opened}` }
      })
    }
    open('listen.address', address, servers.public, (opened) => {
      publicAt = `${tls === 'off' ? 'http' : 'https'}://${opened}`
    })
    await Promise.all(openings)
    return { public: publicAt ?? '', ...others }
  }

  return {
    /** The addresses that are open, as text. That of the public listener is the last one, whichever has opened last. */
    get listening(): readonly string[] {
      return KEYS.flatMap((key) => bound.get(key) ?? [])
    },
    /** The addresses that this machine does not have yet. */
    waiting,
    /** Rejects with a `SetupError` if an address is unusable, or after `endOpening`. A second call has the same result. */
    async open(): Promise<Addresses> {
      refuseAtEnd()
      // If one listener fails, `open` does not wait for the other.
      opening ??= openAll().finally(() => waits.abort())
      return opening
    },
    /** Ends all attempts. Resolves when no listener is opening any more: a listener that is closed while it opens would stay open. */
    async endOpening(): Promise<void> {
      ended = true
      waits.abort()
      await opening?.catch(() => {})
    },
  }
}
