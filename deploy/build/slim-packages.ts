import type { Plugin } from 'rolldown'

/** Replacements for packages that the program uses in part. The rest would be read, kept in memory and partly run at every start. */
const SLIM: Readonly<Record<string, string>> = {
  // Its push gateway, cluster and summaries would keep 0.75 MiB more in an idle process.
  'prom-client': `
    export { default as Registry } from 'prom-client/lib/registry.js'
    export { default as Counter } from 'prom-client/lib/counter.js'
    export { default as Gauge } from 'prom-client/lib/gauge.js'
    export { default as Histogram } from 'prom-client/lib/histogram.js'
    export { default as collectDefaultMetrics } from 'prom-client/lib/defaultMetrics.js'
  `,
  // `prom-client` reads the current trace from it. Postern has no traces.
  '@opentelemetry/api': 'module.exports = {}',
  // `pino` needs it only to write in a thread, which Postern does not do.
  'thread-stream': 'module.exports = class {}',
  // `debug` takes it if it is there, and it is there only for development.
  'supports-color': 'module.exports = false',
  // Loaded at the first WebSocket upgrade.
  'http-proxy-3': `exports.createProxyServer = (options) => require('http-proxy-3').createProxyServer(options)`,
  // `pino` reads only whether it runs in the main thread.
  worker_threads: 'exports.isMainThread = true',
  // `commander` loads it for subcommands that are programs of their own. Postern has none.
  'node:child_process': `
    module.exports = new Proxy({}, { get: (_, name) => process.getBuiltinModule('node:child_process')[name] })
  `,
}

/** Marks a replacement. What a replacement itself imports is the real package. */
const MARK = '\0slim:'

function isReplaced(name: string, importer = ''): boolean {
  return name in SLIM && !importer.startsWith(MARK)
}

export const slimPackages: Plugin = {
  name: 'slim packages',
  resolveId: (name, importer) => (isReplaced(name, importer) ? `${MARK}${name}` : null),
  load(id) {
    const name = id.slice(MARK.length)
    return id.startsWith(MARK) ? (SLIM[name] ?? null) : null
  },
}
