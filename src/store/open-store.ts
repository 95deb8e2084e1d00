import { createClient } from '@redis/client'
import type { StoreConfig } from '../config/store-fields.ts'
import type { StoreAddress } from '../config/store-url.ts'
import {
  FOLLOW_WAIT,
  type Script,
  type SharedStore,
  type SharedStoreListener,
  type StoreReply,
  StoreUnavailable,
} from './shared-store.ts'

/** A stand-in until the connection is built: one server, no time-outs. */
export async function openSharedStore(
  { address, prefix }: StoreConfig & { readonly address: StoreAddress },
  listener: SharedStoreListener,
): Promise<SharedStore> {
  const [node] = address.nodes
  const open = () =>
    createClient({
      socket: { host: node?.host ?? '', port: node?.port ?? 0 },
      disableOfflineQueue: true,
    }).on('error', () => {})
  const commands = open()
  const follower = open()
  await Promise.all([commands.connect(), follower.connect()])
  listener.up()
  const run = async (
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<StoreReply> => {
    try {
      return (await commands.eval(script.source, {
        keys: [...keys],
        arguments: args.map(String),
      })) as StoreReply
    } catch (error) {
      console.error(String(error))
      throw new StoreUnavailable(script.name, 'error', String(error))
    }
  }
  return {
    prefix: `{${prefix}}:`,
    run,
    runDurably: run,
    async follow(stream, id) {
      try {
        const reply = await follower.sendCommand([
          'XREAD',
          'COUNT',
          '1000',
          'BLOCK',
          String(FOLLOW_WAIT),
          'STREAMS',
          stream,
          id,
        ])
        const entries = (reply as unknown as Record<string, [string, string[]][]> | null)?.[stream] ?? []
        return entries.map(([entry, fields]) => ({ id: entry, fields }))
      } catch (error) {
        throw new StoreUnavailable('follow', 'error', String(error))
      }
    },
    up: true,
    async close() {
      commands.destroy()
      follower.destroy()
    },
  }
}
