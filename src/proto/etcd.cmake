# ds_etcd_proto: client stubs of etcd's API, generated into the build tree as "etcd.pb.h" and "etcd.grpc.pb.h".
set(ETCD_PROTO_DIR ${CMAKE_CURRENT_BINARY_DIR}/etcd)
set(ETCD_PROTO_FILES
  ${ETCD_PROTO_DIR}/etcd.pb.cc ${ETCD_PROTO_DIR}/etcd.pb.h
  ${ETCD_PROTO_DIR}/etcd.grpc.pb.cc ${ETCD_PROTO_DIR}/etcd.grpc.pb.h)
file(MAKE_DIRECTORY ${ETCD_PROTO_DIR})
add_custom_command(
  OUTPUT ${ETCD_PROTO_FILES}
  COMMAND protobuf::protoc --proto_path=${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${ETCD_PROTO_DIR}
          --grpc_out=${ETCD_PROTO_DIR} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} etcd.proto
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/etcd.proto
  VERBATIM)
add_library(ds_etcd_proto STATIC ${ETCD_PROTO_FILES})
target_include_directories(ds_etcd_proto SYSTEM PUBLIC ${ETCD_PROTO_DIR})
target_compile_options(ds_etcd_proto PRIVATE -w)  # generated code
target_link_libraries(ds_etcd_proto PUBLIC PkgConfig::GRPC protobuf::libprotobuf-lite)
