import { randomBytes } from 'node:crypto'
import { openSharedStore } from '../../src/store/open-store.ts'
import type { SharedStore, StoreReply } from '../../src/store/shared-store.ts'
import { digestToken, mintGrantId, mintToken } from '../../src/tokens/mint.ts'
import { PUBLISH, READ_STATE } from '../../src/tokens/state-scripts.ts'
import { ISSUE } from '../../src/tokens/token-scripts.ts'
import type { Server } from './server.ts'

/** Milliseconds: the defaults of `tokens.access_lifetime` and `tokens.refresh_lifetime`. */
const ACCESS = 3_600_000
const REFRESH = 7 * 24 * ACCESS

/** Devices whose scripts travel together. */
const TOGETHER = 100

/** Opens the store as a sidecar does: with its connections, and without what it does with them. */
export function openStore({ port }: Server, prefix: string): Promise<SharedStore> {
  return openSharedStore(
    {
      address: {
        kind: 'single',
        nodes: [{ host: '127.0.0.1', port }],
        path: undefined,
        primary: undefined,
        database: 0,
        tls: false,
        user: undefined,
        password: undefined,
      },
      prefix,
      timeout: 30_000,
      tls: { insecure: false },
    },
    {
      // The operation itself rejects.
      failed() {},
      up() {},
      down() {},
      answered() {},
    },
  )
}

/** How the keys of a device of the crowd begin. */
export const prefixOf = (device: number): string => `device-${device}`

/** Makes the devices `from` to `to`, each with its state and so many logins, by the scripts of the sidecars. */
export async function addDevices(
  store: SharedStore,
  { from, to, grants }: { readonly from: number; readonly to: number; readonly grants: number },
): Promise<void> {
  for (let at = from; at < to; at += TOGETHER) {
    const batch = Array.from({ length: Math.min(TOGETHER, to - at) }, (_, i) => at + i)
    await Promise.all(batch.map((device) => addDevice(store, device, grants)))
  }
}

async function addDevice(store: SharedStore, device: number, grants: number): Promise<void> {
  const prefix = `{${prefixOf(device)}}:`
  const random = (size: number): string => randomBytes(size).toString('base64url')
  const published = await store.run(
    PUBLISH,
    [`${prefix}state`],
    [prefix, '', Date.now(), random(16), random(32), random(16)],
  )
  const [, epoch] = published as readonly StoreReply[] // `{grants, epoch}`
  const place = { prefix, epoch: String(epoch) }
  await Promise.all(Array.from({ length: grants }, (_, client) => logIn(store, place, client)))
}

/** One login. Throws if the server refuses it. */
export async function logIn(
  store: SharedStore,
  { prefix, epoch }: { readonly prefix: string; readonly epoch: string },
  client: number,
): Promise<void> {
  const [access, refresh] = [digestToken(mintToken(randomBytes)), digestToken(mintToken(randomBytes))]
  const args = [epoch, mintGrantId(randomBytes), `192.0.2.${client}`, access, ACCESS, refresh, REFRESH, 5_000]
  const reply = await store.run(ISSUE, [`${prefix}state`], [prefix, ...args])
  if ((reply as readonly StoreReply[])[0] !== 'issued') throw new Error(`no login: ${JSON.stringify(reply)}`)
}

/** A sidecar of a crowd: its store, and the epoch of its device. */
export interface Follower {
  readonly store: SharedStore
  readonly epoch: string
}

/** The sidecars of a crowd, one per device. They do what a sidecar does while no request comes. */
export interface Followers {
  readonly each: readonly Follower[]
  close(): Promise<void>
}

/** Opens the stores of so many sidecars, and follows the revocations of their devices as `tokens/revocation-feed.ts` does. */
export async function startFollowers(server: Server, count: number): Promise<Followers> {
  let open = true
  const following: Promise<void>[] = []
  const start = async (device: number): Promise<Follower> => {
    const store = await openStore(server, prefixOf(device))
    const [, epoch] = await readState(store, '')
    following.push(follow(store, () => open))
    return { store, epoch: String(epoch) }
  }
  const each = await Promise.all(Array.from({ length: count }, (_, device) => start(device)))
  return {
    each,
    async close() {
      open = false
      await Promise.all(each.map(({ store }) => store.close()))
      await Promise.all(following)
    },
  }
}

async function follow(store: SharedStore, isOpen: () => boolean): Promise<void> {
  try {
    for (let last = '0-0'; isOpen(); ) {
      const [, , , , id] = await readState(store, last)
      last = String(id)
      await store.follow(`${store.prefix}events`, last)
    }
  } catch (error) {
    if (isOpen()) throw error
  }
}

/** `{dataset, epoch, salt, fingerprint, id of the last event, whether it is kept}`. */
async function readState(store: SharedStore, last: string): Promise<readonly StoreReply[]> {
  return (await store.run(
    READ_STATE,
    [`${store.prefix}state`],
    [store.prefix, last],
  )) as readonly StoreReply[] // see above
}
