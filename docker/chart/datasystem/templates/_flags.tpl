{{- /* Written by scripts/make_chart.py from docker/chart/keys.json and the worker's flags. */}}

{{- /* Arguments that values.yaml decides alone. */}}
{{- define "datasystem.flagArgs" }}
{{- if .Values.global.clusterName }}
- {{ printf "-cluster_name=%v" (.Values.global.clusterName) | quote }}
{{- end }}
{{- if .Values.global.etcd.etcdAddress }}
- {{ printf "-etcd_address=%v" (.Values.global.etcd.etcdAddress) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.etcd.etcdMetaPoolSize | int64)) "8" }}
- {{ printf "-etcd_meta_pool_size=%v" (.Values.global.etcd.etcdMetaPoolSize | int64) | quote }}
{{- end }}
- {{ printf "-max_client_num=%v" (.Values.global.resources.datasystemWorker.maxClientNum | int64) | quote }}
- {{ printf "-oc_shm_threshold_percentage=%v" (.Values.global.resources.datasystemWorker.ocShmThresholdPercentage | int64) | quote }}
{{- if ne (toString (.Values.global.resources.datasystemWorker.scShmThresholdPercentage | int64)) "100" }}
- {{ printf "-sc_shm_threshold_percentage=%v" (.Values.global.resources.datasystemWorker.scShmThresholdPercentage | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.resources.datasystemWorker.scLocalCacheMemorySizeMb | int64)) "1024" }}
- {{ printf "-sc_local_cache_memory_size_mb=%v" (.Values.global.resources.datasystemWorker.scLocalCacheMemorySizeMb | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.resources.datasystemWorker.scCachePages | int64)) "16" }}
- {{ printf "-sc_cache_pages=%v" (.Values.global.resources.datasystemWorker.scCachePages | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.resources.datasystemWorker.scSharedPageSizeMb | int64)) "4" }}
- {{ printf "-sc_shared_page_size_mb=%v" (.Values.global.resources.datasystemWorker.scSharedPageSizeMb | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.resources.datasystemWorker.scSharedPageGroupCount | int64)) "4" }}
- {{ printf "-sc_shared_page_group_count=%v" (.Values.global.resources.datasystemWorker.scSharedPageGroupCount | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.resources.datasystemWorker.pageSize | int64)) "1048576" }}
- {{ printf "-page_size=%v" (.Values.global.resources.datasystemWorker.pageSize | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.spill.spillDirectory)) "" }}
- {{ printf "-spill_directory=%v" (.Values.global.spill.spillDirectory) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.spill.spillSizeLimit | int64)) "0" }}
- {{ printf "-spill_size_limit=%v" (.Values.global.spill.spillSizeLimit | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.spill.spillThreadNum | int64)) "8" }}
- {{ printf "-spill_thread_num=%v" (.Values.global.spill.spillThreadNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.spill.spillFileMaxSizeMb | int64)) "200" }}
- {{ printf "-spill_file_max_size_mb=%v" (.Values.global.spill.spillFileMaxSizeMb | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.spill.spillFileOpenLimit | int64)) "512" }}
- {{ printf "-spill_file_open_limit=%v" (.Values.global.spill.spillFileOpenLimit | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.spill.spillEnableReadahead)) "true" }}
- {{ printf "-spill_enable_readahead=%v" (.Values.global.spill.spillEnableReadahead) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.spill.evictionThreadNum | int64)) "1" }}
- {{ printf "-eviction_thread_num=%v" (.Values.global.spill.evictionThreadNum | int64) | quote }}
{{- end }}
- {{ printf "-eviction_reserve_mem_threshold_mb=%v" (.Values.global.spill.evictionReserveMemThresholdMB | int64) | quote }}
{{- if ne (toString (.Values.global.log.logAsync)) "true" }}
- {{ printf "-log_async=%v" (.Values.global.log.logAsync) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.log.logAsyncQueueSize | int64)) "65536" }}
- {{ printf "-log_async_queue_size=%v" (.Values.global.log.logAsyncQueueSize | int64) | quote }}
{{- end }}
- {{ printf "-max_log_size=%v" (.Values.global.log.maxLogSize | int64) | quote }}
- {{ printf "-log_retention_day=%v" (.Values.global.log.logRetentionDay | int64) | quote }}
{{- if ne (toString (.Values.global.log.logBufSecs | int64)) "10" }}
- {{ printf "-logbufsecs=%v" (.Values.global.log.logBufSecs | int64) | quote }}
{{- end }}
{{- if .Values.global.log.logFilename }}
- {{ printf "-log_filename=%v" (.Values.global.log.logFilename) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.log.scMetricsLogIntervalS | int64)) "60" }}
- {{ printf "-sc_metrics_log_interval_s=%v" (.Values.global.log.scMetricsLogIntervalS | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.observability.logMonitor)) "true" }}
- {{ printf "-log_monitor=%v" (.Values.global.observability.logMonitor) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.observability.logMonitorExporter)) "harddisk" }}
- {{ printf "-log_monitor_exporter=%v" (.Values.global.observability.logMonitorExporter) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.observability.logMonitorIntervalMs | int64)) "10000" }}
- {{ printf "-log_monitor_interval_ms=%v" (.Values.global.observability.logMonitorIntervalMs | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.l2Cache.l2CacheDeleteThreadNum | int64)) "32" }}
- {{ printf "-l2_cache_delete_thread_num=%v" (.Values.global.l2Cache.l2CacheDeleteThreadNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.l2Cache.objectDelRetryDelaySec | int64)) "3600" }}
- {{ printf "-object_del_retry_delay_sec=%v" (.Values.global.l2Cache.objectDelRetryDelaySec | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.l2Cache.ocIoFromL2CacheNeedMetadata)) "true" }}
- {{ printf "-oc_io_from_l2cache_need_metadata=%v" (.Values.global.l2Cache.ocIoFromL2CacheNeedMetadata) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.l2Cache.obs.obsEndpoint)) "" }}
- {{ printf "-obs_endpoint=%v" (.Values.global.l2Cache.obs.obsEndpoint) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.l2Cache.obs.obsBucket)) "" }}
- {{ printf "-obs_bucket=%v" (.Values.global.l2Cache.obs.obsBucket) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.l2Cache.obs.obsHttpsEnabled)) "false" }}
- {{ printf "-obs_https_enabled=%v" (.Values.global.l2Cache.obs.obsHttpsEnabled) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.metadata.enableMetaReplica)) "false" }}
- {{ printf "-enable_meta_replica=%v" (.Values.global.metadata.enableMetaReplica) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.metadata.rocksdbStoreDir)) "/home/yuanrong/datasystem/rocksdb" }}
- {{ printf "-rocksdb_store_dir=%v" (.Values.global.metadata.rocksdbStoreDir) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.metadata.rocksdbMaxOpenFile | int64)) "128" }}
- {{ printf "-rocksdb_max_open_file=%v" (.Values.global.metadata.rocksdbMaxOpenFile | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.metadata.rocksdbBackgroundThreads | int64)) "16" }}
- {{ printf "-rocksdb_background_threads=%v" (.Values.global.metadata.rocksdbBackgroundThreads | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.metadata.rocksdbWriteMode)) "async" }}
- {{ printf "-rocksdb_write_mode=%v" (.Values.global.metadata.rocksdbWriteMode) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.metadata.enableRedirect)) "true" }}
- {{ printf "-enable_redirect=%v" (.Values.global.metadata.enableRedirect) | quote }}
{{- end }}
- {{ printf "-enable_data_replication=%v" (.Values.global.metadata.enableDataReplication) | quote }}
{{- if ne (toString (.Values.global.rpc.curveKeyDir)) "/home/yuanrong/datasystem/curve_key_dir" }}
- {{ printf "-curve_key_dir=%v" (.Values.global.rpc.curveKeyDir) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.ocWorkerWorkerDirectPort | int64)) "0" }}
- {{ printf "-oc_worker_worker_direct_port=%v" (.Values.global.rpc.ocWorkerWorkerDirectPort | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.ocWorkerWorkerPoolSize | int64)) "3" }}
- {{ printf "-oc_worker_worker_pool_size=%v" (.Values.global.rpc.ocWorkerWorkerPoolSize | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.batchGetThresholdMb | int64)) "100" }}
- {{ printf "-batch_get_threshold_mb=%v" (.Values.global.rpc.batchGetThresholdMb | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.payloadNocopyThreshold | int64)) "104857600" }}
- {{ printf "-payload_nocopy_threshold=%v" (.Values.global.rpc.payloadNocopyThreshold | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.rpcThreadNum | int64)) "128" }}
- {{ printf "-rpc_thread_num=%v" (.Values.global.rpc.rpcThreadNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.ocThreadNum | int64)) "64" }}
- {{ printf "-oc_thread_num=%v" (.Values.global.rpc.ocThreadNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.zmqServerIoContext | int64)) "5" }}
- {{ printf "-zmq_server_io_context=%v" (.Values.global.rpc.zmqServerIoContext | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.zmqClientIoContext | int64)) "5" }}
- {{ printf "-zmq_client_io_context=%v" (.Values.global.rpc.zmqClientIoContext | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.zmqChunkSz | int64)) "1048576" }}
- {{ printf "-zmq_chunk_sz=%v" (.Values.global.rpc.zmqChunkSz | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.maxRpcSessionNum | int64)) "2048" }}
- {{ printf "-max_rpc_session_num=%v" (.Values.global.rpc.maxRpcSessionNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scRegularSocketNum | int64)) "32" }}
- {{ printf "-sc_regular_socket_num=%v" (.Values.global.rpc.scRegularSocketNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scStreamSocketNum | int64)) "32" }}
- {{ printf "-sc_stream_socket_num=%v" (.Values.global.rpc.scStreamSocketNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scThreadNum | int64)) "128" }}
- {{ printf "-sc_thread_num=%v" (.Values.global.rpc.scThreadNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scWorkerWorkerDirectPort | int64)) "0" }}
- {{ printf "-sc_worker_worker_direct_port=%v" (.Values.global.rpc.scWorkerWorkerDirectPort | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scWorkerWorkerPoolSize | int64)) "3" }}
- {{ printf "-sc_worker_worker_pool_size=%v" (.Values.global.rpc.scWorkerWorkerPoolSize | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scGcIntervalMs | int64)) "50" }}
- {{ printf "-sc_gc_interval_ms=%v" (.Values.global.rpc.scGcIntervalMs | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scScanIntervalMs | int64)) "10" }}
- {{ printf "-sc_scan_interval_ms=%v" (.Values.global.rpc.scScanIntervalMs | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scScanThreadNum | int64)) "16" }}
- {{ printf "-sc_scan_thread_num=%v" (.Values.global.rpc.scScanThreadNum | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rpc.scScanNumBuckets | int64)) "1024" }}
- {{ printf "-sc_scan_num_buckets=%v" (.Values.global.rpc.scScanNumBuckets | int64) | quote }}
{{- end }}
- {{ printf "-ipc_through_shared_memory=%v" (.Values.global.ipc.ipcThroughSharedMemory) | quote }}
{{- if .Values.global.ipc.udsDir }}
- {{ printf "-unix_domain_socket_dir=%v" (.Values.global.ipc.udsDir) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.reliability.clientReconnectWaitS | int64)) "5" }}
- {{ printf "-client_reconnect_wait_s=%v" (.Values.global.reliability.clientReconnectWaitS | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.reliability.clientDeadTimeoutS | int64)) "120" }}
- {{ printf "-client_dead_timeout_s=%v" (.Values.global.reliability.clientDeadTimeoutS | int64) | quote }}
{{- end }}
- {{ printf "-node_timeout_s=%v" (.Values.global.reliability.nodeTimeoutS | int64) | quote }}
{{- if ne (toString (.Values.global.reliability.nodeDeadTimeoutS | int64)) "300" }}
- {{ printf "-node_dead_timeout_s=%v" (.Values.global.reliability.nodeDeadTimeoutS | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.reliability.enableReconciliation)) "true" }}
- {{ printf "-enable_reconciliation=%v" (.Values.global.reliability.enableReconciliation) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.reliability.enableHashRingSelfHealing)) "false" }}
- {{ printf "-enable_hash_ring_self_healing=%v" (.Values.global.reliability.enableHashRingSelfHealing) | quote }}
{{- end }}
- {{ printf "-liveness_probe_timeout_s=%v" (.Values.global.reliability.livenessProbeTimeoutS | int64) | quote }}
{{- if ne (toString (.Values.global.reliability.addNodeWaitTimeS | int64)) "60" }}
- {{ printf "-add_node_wait_time_s=%v" (.Values.global.reliability.addNodeWaitTimeS | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.reliability.autoDelDeadNode)) "true" }}
- {{ printf "-auto_del_dead_node=%v" (.Values.global.reliability.autoDelDeadNode) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.reliability.enableDistributedMaster)) "true" }}
- {{ printf "-enable_distributed_master=%v" (.Values.global.reliability.enableDistributedMaster) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.reliability.enableStreamDataVerification)) "false" }}
- {{ printf "-enable_stream_data_verification=%v" (.Values.global.reliability.enableStreamDataVerification) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.gracefulShutdown.enableLosslessDataExitMode)) "false" }}
- {{ printf "-enable_lossless_data_exit_mode=%v" (.Values.global.gracefulShutdown.enableLosslessDataExitMode) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.gracefulShutdown.checkAsyncQueueEmptyTimeS | int64)) "15" }}
- {{ printf "-check_async_queue_empty_time_s=%v" (.Values.global.gracefulShutdown.checkAsyncQueueEmptyTimeS | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.gracefulShutdown.dataMigrateRateLimitMb | int64)) "40" }}
- {{ printf "-data_migrate_rate_limit_mb=%v" (.Values.global.gracefulShutdown.dataMigrateRateLimitMb | int64) | quote }}
{{- end }}
- {{ printf "-arena_per_tenant=%v" (.Values.global.performance.arenaPerTenant | int64) | quote }}
- {{ printf "-enable_rdma=%v" (.Values.global.performance.enableRdma) | quote }}
- {{ printf "-enable_huge_tlb=%v" (.Values.global.performance.enableHugeTlb) | quote }}
{{- if ne (toString (.Values.global.performance.rdmaRegisterWholeArena)) "true" }}
- {{ printf "-rdma_register_whole_arena=%v" (.Values.global.performance.rdmaRegisterWholeArena) | quote }}
{{- end }}
- {{ printf "-enable_fallocate=%v" (.Values.global.performance.enableFallocate) | quote }}
- {{ printf "-shared_memory_populate=%v" (.Values.global.performance.sharedMemoryPopulate) | quote }}
- {{ printf "-enable_thp=%v" (.Values.global.performance.enableThp) | quote }}
- {{ printf "-memory_reclamation_time_second=%v" (.Values.global.performance.memoryReclamationTimeSecond | int64) | quote }}
{{- if ne (toString (.Values.global.performance.asyncDelete)) "false" }}
- {{ printf "-async_delete=%v" (.Values.global.performance.asyncDelete) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.enableWorkerWorkerBatchGet)) "false" }}
- {{ printf "-enable_worker_worker_batch_get=%v" (.Values.global.performance.enableWorkerWorkerBatchGet) | quote }}
{{- end }}
- {{ printf "-oc_shm_transfer_threshold_kb=%v" (.Values.global.performance.ocShmTransferThresholdKB | int64) | quote }}
{{- if ne (toString (.Values.global.performance.sharedDiskDirectory)) "" }}
- {{ printf "-shared_disk_directory=%v" (.Values.global.performance.sharedDiskDirectory) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.sharedDiskSizeMb | int64)) "0" }}
- {{ printf "-shared_disk_size_mb=%v" (.Values.global.performance.sharedDiskSizeMb | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.sharedDiskArenaPerTenant | int64)) "8" }}
- {{ printf "-shared_disk_arena_per_tenant=%v" (.Values.global.performance.sharedDiskArenaPerTenant | int64) | quote }}
{{- end }}
- {{ printf "-oc_worker_aggregate_merge_size=%v" (.Values.global.performance.ocWorkerAggregateMergeSize | int64) | quote }}
- {{ printf "-oc_worker_aggregate_single_max=%v" (.Values.global.performance.ocWorkerAggregateSingleMax | int64) | quote }}
{{- if ne (toString (.Values.global.performance.ocWorkerWorkerParallelMin | int64)) "100" }}
- {{ printf "-oc_worker_worker_parallel_min=%v" (.Values.global.performance.ocWorkerWorkerParallelMin | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.ocWorkerWorkerParallelNums | int64)) "16" }}
- {{ printf "-oc_worker_worker_parallel_nums=%v" (.Values.global.performance.ocWorkerWorkerParallelNums | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.urmaMode)) "UB" }}
- {{ printf "-urma_mode=%v" (.Values.global.performance.urmaMode) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.urmaPollSize | int64)) "8" }}
- {{ printf "-urma_poll_size=%v" (.Values.global.performance.urmaPollSize | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.urmaConnectionSize | int64)) "16" }}
- {{ printf "-urma_connection_size=%v" (.Values.global.performance.urmaConnectionSize | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.urmaRegisterWholeArena)) "true" }}
- {{ printf "-urma_register_whole_arena=%v" (.Values.global.performance.urmaRegisterWholeArena) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.performance.urmaEventMode)) "false" }}
- {{ printf "-urma_event_mode=%v" (.Values.global.performance.urmaEventMode) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.crossAz.otherClusterNames)) "" }}
- {{ printf "-other_cluster_names=%v" (.Values.global.crossAz.otherClusterNames) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.crossAz.crossAzGetDataFromWorker)) "true" }}
- {{ printf "-cross_cluster_get_data_from_worker=%v" (.Values.global.crossAz.crossAzGetDataFromWorker) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.crossAz.crossAzGetMetaFromWorker)) "false" }}
- {{ printf "-cross_cluster_get_meta_from_worker=%v" (.Values.global.crossAz.crossAzGetMetaFromWorker) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.akSk.requestExpireTimeS | int64)) "300" }}
- {{ printf "-request_expire_time_s=%v" (.Values.global.akSk.requestExpireTimeS | int64) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.akSk.skipAuthenticate)) "false" }}
- {{ printf "-skip_authenticate=%v" (.Values.global.akSk.skipAuthenticate) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.tenantAuth.yuanrong.yuanrongIamUrl)) "" }}
- {{ printf "-yuanrong_iam_url=%v" (.Values.global.tenantAuth.yuanrong.yuanrongIamUrl) | quote }}
{{- end }}
{{- if ne (toString (.Values.global.rollingUpdateTimeoutS | int64)) "1800" }}
- {{ printf "-rolling_update_timeout_s=%v" (.Values.global.rollingUpdateTimeoutS | int64) | quote }}
{{- end }}
{{- end }}

{{- /* Content of monitor_config_file: the flags that may change at run time. */}}
{{- define "datasystem.liveFlags" }}
--v={{ .Values.global.log.logLevel | int64 }}
--minloglevel={{ .Values.global.log.minLogLevel | int64 }}
--max_log_file_num={{ .Values.global.log.maxLogFileNum | int64 }}
--log_compress={{ .Values.global.log.logCompress }}
--heartbeat_interval_ms={{ .Values.global.reliability.heartbeatIntervalMs | int64 }}
{{- end }}

{{- /* Ends the rendering when a value asks for what the worker refuses. */}}
{{- define "datasystem.refusals" }}
{{- if ne (toString (.Values.global.etcd.enableEtcdAuth)) "false" }}{{ fail "global.etcd.enableEtcdAuth: not supported, this version speaks to etcd without TLS; leave it at false" }}{{ end }}
{{- if ne (toString (.Values.global.l2Cache.l2CacheType)) "none" }}{{ fail "global.l2Cache.l2CacheType: not supported, there is no second-level store in this version, so nothing would be durable; leave it at \"none\"" }}{{ end }}
{{- if ne (toString (.Values.global.rpc.enableCurveZmq)) "false" }}{{ fail "global.rpc.enableCurveZmq: not supported, this version cannot encrypt sessions; leave it at false" }}{{ end }}
{{- if ne (toString (.Values.global.performance.enableUrma)) "false" }}{{ fail "global.performance.enableUrma: not supported, this build has no URMA transport; use enable_rdma; leave it at false" }}{{ end }}
{{- if ne (toString (.Values.global.performance.enableP2pTransfer)) "false" }}{{ fail "global.performance.enableP2pTransfer: not supported, this build has no heterogeneous support; leave it at false" }}{{ end }}
{{- if ne (toString (.Values.global.akSk.systemAccessKey)) "" }}{{ fail "global.akSk.systemAccessKey: not supported, this version does not sign requests; leave it at \"\"" }}{{ end }}
{{- if ne (toString (.Values.global.akSk.systemSecretKey)) "" }}{{ fail "global.akSk.systemSecretKey: not supported, this version does not sign requests; leave it at \"\"" }}{{ end }}
{{- if ne (toString (.Values.global.akSk.systemDataKey)) "" }}{{ fail "global.akSk.systemDataKey: not supported, this version does not sign requests; leave it at \"\"" }}{{ end }}
{{- if ne (toString (.Values.global.akSk.tenantAccessKey)) "" }}{{ fail "global.akSk.tenantAccessKey: not supported, this version does not sign requests; leave it at \"\"" }}{{ end }}
{{- if ne (toString (.Values.global.akSk.tenantSecretKey)) "" }}{{ fail "global.akSk.tenantSecretKey: not supported, this version does not sign requests; leave it at \"\"" }}{{ end }}
{{- if ne (toString (.Values.global.tenantAuth.authorizationEnable)) "false" }}{{ fail "global.tenantAuth.authorizationEnable: not supported, this version has no tenant authentication; leave it at false" }}{{ end }}
{{- if ne (toString (.Values.global.tenantAuth.iamKit)) "none" }}{{ fail "global.tenantAuth.iamKit: not supported, this version has no tenant authentication; leave it at \"none\"" }}{{ end }}
{{- end }}
