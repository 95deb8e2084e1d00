/** Fields from which frameworks, servers and their modules take another path, method or host. */
export const OVERRIDES: readonly string[] = `
  X-HTTP-Method-Override X-HTTP-Method X-Method-Override X-MethodOverride X-HTTP-MethodOverride HTTP-Method-Override X-Tunneled-Method
  X-Original-Method X-Forwarded-Method Method X-Method X-HTTP-Verb X-HTTP-Verb-Override X-Verb
  HTTP-Verb Verb-Override X-Original-URL X-OriginalURL X-Rewrite-URL X-Rewrite-Uri X-Override-URL
  X-Forwarded-Uri X-Forwarded-Path X-Forwarded-Prefix X-Envoy-Original-Path X-Accel-Redirect X-HTTP-Path-Override X-HTTP-DestinationURL
  X-Proxy-Url Request-URI X-Request-URI Request-Url Base-Url Http-Url Uri
  Url Script-Name X-Script-Name Path-Info X-Path-Info Path Redirect
  X-Base-Path X-Original-Host X-Host X-HTTP-Host-Override Translate`
  .trim()
  .split(/\s+/)

/** Names that only look alike, and those of WebDAV and CORS that name no other path. */
export const LOOK_ALIKES: readonly string[] = `
  Host-Id X-Host-Id X-Hostname X-Security-Token X-Curl-Version X-Prefixed X-Methodology
  X-Verbose Access-Control-Request-Method Upgrade-Insecure-Requests SOAPAction Referer X-Requested-With Overwrite
  Lock-Token If Depth Timeout Translated X-Api-Key X-Pathology`
  .trim()
  .split(/\s+/)
